//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/config"
)

const root = "../.."

// step is a command of a text, and what it is said to print.
type step struct{ command, prints string }

// blocks returns what stands in the code blocks of a language.
func blocks(t *testing.T, file, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

// steps returns the commands of a console block.
func steps(block string) []step {
	var all []step
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			command, _, _ = strings.Cut(strings.TrimSpace(command), " #")
			all = append(all, step{command: strings.TrimSpace(command)})
		} else if len(all) > 0 {
			all[len(all)-1].prints += line
		}
	}
	return all
}

// reader follows a text in a home of its own, with nothing on the PATH but what
// the text has put there, and Go for the commands of that name.
type reader struct {
	t          *testing.T
	home, bin  string
	goEnv      []string
	address    string // where the gateway listens; "": there is none yet
	background []*exec.Cmd
}

// TestReadme does what the README says, from the first command to the last, and
// compares what is printed. The gateway gets a free port, and the demo ends by itself.
func TestReadme(t *testing.T) {
	home := t.TempDir()
	r := &reader{t: t, home: home, bin: filepath.Join(home, "bin")}
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT").Output()
	if err != nil {
		t.Skipf("there is no Go here to follow the README with: %v", err)
	}
	for i, value := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		r.goEnv = append(r.goEnv, []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT"}[i]+"="+value)
	}
	defer r.stop()
	n := 0
	for _, block := range blocks(t, "README.md", "console") {
		for _, s := range steps(block) {
			n++
			r.follow(s)
		}
	}
	if n < 10 {
		t.Errorf("the README has %d commands", n)
	}
}

func (r *reader) follow(s step) {
	r.t.Helper()
	switch {
	case strings.HasPrefix(s.command, "go run ./cmd/roster demo"):
		s.command += " --once --listen 127.0.0.1:0"
	case strings.HasPrefix(s.command, "roster serve"):
		r.serve(s)
		return
	}
	command := s.command
	if r.address != "" {
		command = strings.ReplaceAll(command, "127.0.0.1:7678", r.address)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	want := r.pattern(s.prints)
	for asked := 0; ; asked++ {
		out, err := r.shell(ctx, command).CombinedOutput()
		if err != nil {
			r.t.Fatalf("$ %s\n%s%v", s.command, out, err)
		}
		if want.Match(spaced(out)) {
			return
		}
		// A server that is down is just being tried again now and then.
		const patience = 20
		if asks := command == "roster status" || command == "roster list"; !asks || asked == patience {
			r.t.Fatalf("$ %s\n%s\nThe README says:\n%s", s.command, out, s.prints)
		}
	}
}

// shell makes a command of a shell. Commands of Go run in the repository.
func (r *reader) shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir = r.home
	cmd.Env = append([]string{
		"HOME=" + r.home, "XDG_CONFIG_HOME=" + filepath.Join(r.home, ".config"), "PATH=" + r.bin, "GORACE=atexit_sleep_ms=0",
	}, r.goEnv...)
	if strings.HasPrefix(command, "go ") {
		cmd.Dir = root
		cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "GOBIN="+r.bin, "GOFLAGS=-buildvcs=false")
	}
	return cmd
}

// serve starts the gateway and waits until it says where it listens.
func (r *reader) serve(s step) {
	r.t.Helper()
	command := "exec " + strings.TrimSuffix(s.command, "&") + " --listen 127.0.0.1:0"
	cmd := r.shell(r.t.Context(), command)
	log, err := os.Create(filepath.Join(r.home, "log"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.background = append(r.background, cmd)
	listening := regexp.MustCompile(`msg=listening url=http://(\S+)/mcp`)
	within := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			r.t.Fatal(err)
		}
		if m := listening.FindSubmatch(text); m != nil {
			r.address = string(m[1])
			if r.pattern(s.prints).Match(spaced(text)) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-within:
			r.t.Fatalf("$ %s\n%s\nThe README says:\n%s", s.command, text, s.prints)
		}
	}
}

func (r *reader) stop() {
	for _, cmd := range r.background {
		_ = cmd.Process.Signal(syscall.SIGTERM) // if it has ended, Wait says why
		if err := cmd.Wait(); err != nil {
			r.t.Errorf("the gateway ended with %v", err)
		}
	}
}

// pattern makes a pattern of what is said to be printed: "..." is anything, on a
// line of its own any lines, and headings of tables are for terminals.
func (r *reader) pattern(prints string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for line := range strings.Lines(prints) {
		line = strings.TrimSpace(strings.ReplaceAll(line, "/home/you", r.home))
		if r.address != "" {
			line = strings.ReplaceAll(line, "127.0.0.1:7678", r.address)
		}
		switch {
		case line == "...":
			b.WriteString(`(?:.*\n)*`)
		case regexp.MustCompile(`^[A-Z]+( +[A-Z]+)+$`).MatchString(line):
		default:
			line = regexp.QuoteMeta(string(bytes.TrimSpace(spaced([]byte(line)))))
			b.WriteString(strings.ReplaceAll(line, `\.\.\.`, `.*`) + ` ?\n`)
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// spaced makes one space of all spaces and tabs in a row.
func spaced(text []byte) []byte {
	return regexp.MustCompile(`[ \t]+`).ReplaceAll(text, []byte(" "))
}

// Examples of configurations in the documents are ones that Roster reads without a
// word, and those for clients are JSON.
func TestDocumentedConfigurations(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		for _, block := range blocks(t, strings.TrimPrefix(file, root+"/"), "json") {
			if !strings.Contains(block, `"mcpServers"`) && !strings.Contains(block, `"servers"`) && !strings.Contains(block, `"roster"`) {
				continue
			}
			n++
			path := filepath.Join(t.TempDir(), "config.json")
			env := func(name string) (string, bool) { return "set", name == "TOKEN" || name == "TEAM_TOKEN" }
			_, problems, err := config.LoadEdited([]string{path}, env, path, []byte(block))
			if err != nil {
				t.Errorf("%s: %v in\n%s", file, err, block)
			}
			for _, p := range problems {
				if !strings.Contains(p.Message, "sha256") && !strings.Contains(block, "…") {
					t.Errorf("%s: %v in\n%s", file, p, block)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("the documents have %d configurations", n)
	}
}
