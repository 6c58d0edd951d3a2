package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/clientfile"
	"github.com/mcp-roster/roster/internal/config"
)

// edited is what a command that changes the configuration prints in JSON.
type edited struct {
	File    string `json:"file"`
	Server  string `json:"server"`
	Did     string `json:"did"`
	From    string `json:"from,omitempty"` // the name before
	Changed bool   `json:"changed"`
	gatewayNews
}

// gatewayNews is whether a gateway that runs takes a change up.
type gatewayNews struct {
	Gateway string `json:"gateway,omitempty"` // the URL of the one that runs with this configuration
	Reload  bool   `json:"reload,omitempty"`  // it does not watch its files: 'roster reload' tells it
}

// editing is one change of a configuration file.
type editing struct {
	prog  *program
	paths []string // all of the configuration
	path  string   // the one to change
	text  []byte   // as it was
	*clientfile.File
}

// configPaths returns the files of the configuration, absolute, whether they are
// there or not.
func (p *program) configPaths() ([]string, error) {
	paths := slices.Clone(p.configs)
	if len(paths) == 0 {
		path, err := config.DefaultPath()
		if err != nil {
			return nil, fmt.Errorf("%w: name a file with --config", err)
		}
		paths = []string{path}
	}
	for i, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", path, err)
		}
		paths[i] = abs
	}
	return paths, nil
}

// edit opens the file in which a server stands; of several the last, which counts.
// Without a name, or if it stands in none, it is the last file.
func (p *program) edit(name string) (*editing, error) {
	paths, err := p.configPaths()
	if err != nil {
		return nil, err
	}
	var last *editing
	for _, path := range slices.Backward(paths) {
		e := &editing{prog: p, paths: paths, path: path}
		if e.text, err = clientfile.Read(path); err != nil {
			return nil, err
		}
		if e.File, err = clientfile.Parse(clientfile.FormatOf(path), "", e.text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if last == nil {
			last = e
		}
		if _, ok := e.Entry(name); ok {
			return e, nil
		}
	}
	return last, nil
}

// editExisting is edit for a server that must be there.
func (p *program) editExisting(name string) (*editing, error) {
	e, err := p.edit(name)
	if err != nil {
		return nil, err
	}
	if _, ok := e.Entry(name); !ok {
		hint := ""
		if near, ok := config.Nearest(name, e.Names()); ok {
			hint = fmt.Sprintf(": did you mean %q?", near)
		}
		return nil, fmt.Errorf("%s has no server %q%s", e.path, name, hint)
	}
	return e, nil
}

// save writes the file if what it says can be read, and, unless forced, is not
// wrong in a way in which it was not wrong before.
func (e *editing) save(force bool) error {
	if string(e.Bytes()) == string(e.text) {
		return nil
	}
	_, problems, err := config.LoadEdited(e.existing(), e.prog.LookupEnv, e.path, e.Bytes())
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	if wrong := e.newErrors(problems); len(wrong) > 0 && !force {
		e.prog.report(wrong)
		return fmt.Errorf("nothing was written to %s: repair this, or insist with --force", e.path)
	}
	err = clientfile.Replace(e.path, e.text, e.Bytes())
	if errors.Is(err, clientfile.ErrChanged) {
		return fmt.Errorf("%w: nothing was written, run the command again", err)
	}
	return err
}

// existing returns the files that are there, and the one that is changed.
func (e *editing) existing() []string {
	return slices.DeleteFunc(slices.Clone(e.paths), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil && path != e.path
	})
}

// newErrors returns the errors that the file did not have before.
func (e *editing) newErrors(problems []config.Problem) []config.Problem {
	key := func(p config.Problem) string { return p.Server + "\x00" + p.Field + "\x00" + p.Message }
	known := make(map[string]bool)
	if _, before, err := config.LoadEdited(e.existing(), e.prog.LookupEnv, e.path, e.text); err == nil {
		for _, p := range before {
			known[key(p)] = true
		}
	}
	return slices.DeleteFunc(problems, func(p config.Problem) bool {
		return p.Severity != config.SeverityError || known[key(p)]
	})
}

// outcome is what was done.
func (e *editing) outcome(ctx context.Context, server, did string) edited {
	return edited{File: e.path, Server: server, Did: did, Changed: string(e.Bytes()) != string(e.text), gatewayNews: e.prog.gatewayNews(ctx)}
}

// told says in words what was done, and when a gateway that runs takes it up.
func (p *program) told(r edited) {
	from := ""
	if r.From != "" {
		from = clean(r.From) + " to "
	}
	if !r.Changed {
		writef(p.out, "%s is %s in %s already\n", clean(r.Server), r.Did, r.File)
		return
	}
	writef(p.out, "%s %s%s in %s\n", r.Did, from, clean(r.Server), r.File)
	p.tell(r.gatewayNews)
}

// tell says whether a gateway takes a change up.
func (p *program) tell(n gatewayNews) {
	switch {
	case n.Reload:
		writef(p.out, "the gateway at %s does not watch its files: 'roster reload' has it take this up\n", n.Gateway)
	case n.Gateway != "":
		writef(p.out, "the gateway at %s takes it up; 'roster status' says if it cannot\n", n.Gateway)
	}
}

// print prints one outcome.
func (p *program) print(r edited) error {
	if p.json() {
		return p.printJSON(r)
	}
	p.told(r)
	return nil
}

// gatewayNews asks the gateway that runs with this configuration, if there is one.
func (p *program) gatewayNews(ctx context.Context) gatewayNews {
	endpoint, _, err := p.find(ctx)
	if err != nil || endpoint == "" {
		return gatewayNews{}
	}
	var st admin.Status
	if p.get(ctx, endpoint, "status", &st) != nil {
		return gatewayNews{}
	}
	return gatewayNews{Gateway: cmp.Or(st.URL, "its pipes"), Reload: !st.Config.Watched}
}

// completeServers completes the names of configured servers.
func (p *program) completeServers(typed string, taken []string) []string {
	p.readOnce()
	paths, err := p.configPaths()
	if err != nil {
		return nil
	}
	var names []string
	for _, path := range paths {
		raw, err := clientfile.Read(path)
		if err != nil {
			continue
		}
		f, err := clientfile.Parse(clientfile.FormatOf(path), "", raw)
		if err != nil {
			continue
		}
		for _, name := range f.Names() {
			if strings.HasPrefix(name, typed) && !slices.Contains(taken, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
