// Bench measures the gateway against the least that could do its work: a relay
// that only swaps ids, and a handler that only serves an encoded list. See
// README.md for what it runs and how to read what it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	var err error
	switch role {
	case "echo":
		err = newEchoServer(catalogTools).serve(os.Stdin, os.Stdout)
	case relayName:
		err = runRelay()
	case listName:
		err = serve(newListHandler(catalogServers, catalogTools))
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, os.Args[1:])
		stop()
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runRelay serves a relay in front of one echo server.
func runRelay() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	child := exec.Command(self, "echo")
	in, err := child.StdinPipe()
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	r := newRelay(in)
	ended := make(chan error, 1)
	go func() { ended <- r.read(out) }() // ends with the child
	err = serve(r)
	_ = in.Close() // a pipe: nothing is lost
	<-ended
	return errors.Join(err, child.Wait())
}

// run is the benchmark itself.
func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	var (
		only     = fs.String("only", "", "targets to run, of roster, relay and list, by commas (all)")
		dated    = fs.String("era", string(stateless), "shape of the requests: 2026-07-28 or 2025-11-25")
		rounds   = fs.Int("rounds", 9, "how often everything is measured")
		duration = fs.Duration("duration", 200*time.Millisecond, "length of one measurement")
		sizes    = fs.String("sizes", "100,10240", "lengths of a result in bytes, by commas")
		big      = fs.Bool("big", false, "also measure results of 1 MiB")
		callers  = fs.String("callers", "1,16,64", "numbers of concurrent calls, by commas")
		openLoad = fs.Float64("open", 0.3, "rate of the open loop as a share of the relay's capacity; 0 leaves it out")
		openRate = fs.Float64("open-rate", 0, "rate of the open loop in calls a second, instead of -open")
		pattern  = fs.String("run", "", "measure only scenarios whose name matches this regular expression")
		binary   = fs.String("roster", "", "the gateway's binary; built from -source if empty")
		source   = fs.String("source", "..", "the gateway's module")
		out      = fs.String("o", "results/latest.json", "file for the results")
		profile  = fs.String("profile", "", "file for a CPU profile of the gateway, taken while it is measured")
		check    = fs.Bool("check", false, "fail if a ratio is below its threshold")
		minCall  = fs.Float64("min-call", 0.7, "threshold for tools/call, of the relay's throughput")
		minList  = fs.Float64("min-list", 0.8, "threshold for tools/list, of the list handler's throughput")
	)
	if err := fs.Parse(args); err != nil {
		return err
	}
	o := options{era: era(*dated), rounds: *rounds, duration: *duration, openLoad: *openLoad, openRate: *openRate, profile: *profile, progress: os.Stderr}
	if *big {
		*sizes += "," + strconv.Itoa(1<<20)
	}
	if err := o.parse(*only, *sizes, *callers, *pattern); err != nil {
		return err
	}
	if err := o.valid(fs.Args()); err != nil {
		return err
	}
	results, load, err := o.bench(ctx, *binary, *source)
	if err != nil {
		return err
	}
	if err := writeTable(os.Stdout, results); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	if err := newReport(o, results, load).write(*out); err != nil {
		return err
	}
	if !*check {
		return nil
	}
	short, err := shortfalls(results, map[string]float64{kindCall: *minCall, kindList: *minList})
	if err == nil && len(short) > 0 {
		err = fmt.Errorf("too slow:\n%s", strings.Join(short, "\n"))
	}
	return err
}

// bench starts the targets, measures and stops them. It also returns how busy
// the machine was before.
func (o options) bench(ctx context.Context, binary, source string) (results []result, load string, err error) {
	load = loadAverage()
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, "", fmt.Errorf("make directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if binary == "" && slices.Contains(o.only, rosterName) {
		if binary, err = buildRoster(ctx, source, dir); err != nil {
			return nil, "", fmt.Errorf("%w(run without it: -only relay,list)", err)
		}
	}
	var targets []*target
	defer func() {
		for _, t := range targets {
			err = errors.Join(err, t.stop())
		}
	}()
	var flags []string
	if o.profile != "" {
		flags = []string{"--pprof"}
	}
	for _, name := range o.only {
		t, err := startTarget(ctx, name, dir, binary, flags...)
		if err != nil {
			return nil, "", err
		}
		targets = append(targets, t)
		if name == relayName {
			continue
		}
		if err := t.waitForList(ctx, o.era); err != nil {
			return nil, "", err
		}
	}
	// The load generator collects between measurements, not in them.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(2 << 30)
	if o.profile == "" {
		results, err = o.measureAll(ctx, targets)
		return results, load, err
	}
	profiled := make(chan error, 1)
	seconds := time.Duration(o.rounds*len(o.scenarios())) * o.duration
	go func() { profiled <- profileRoster(ctx, filepath.Join(dir, "state"), seconds, o.profile) }() // ends with the profile
	results, err = o.measureAll(ctx, targets)
	return results, load, errors.Join(err, <-profiled)
}

// valid says what is wrong with the options.
func (o options) valid(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	if o.era != stateless && o.era != session {
		return fmt.Errorf("-era must be %s or %s", stateless, session)
	}
	if o.rounds < 1 || o.duration <= 0 {
		return fmt.Errorf("-rounds and -duration must be positive")
	}
	for _, n := range o.sizes {
		if n > maxEcho {
			return fmt.Errorf("-sizes goes up to %d", maxEcho)
		}
	}
	for _, n := range o.callers {
		if n < 1 || n > 512 {
			return fmt.Errorf("-callers goes from 1 to 512")
		}
	}
	for _, name := range o.only {
		if name != rosterName && name != relayName && name != listName {
			return fmt.Errorf("-only knows no %q", name)
		}
	}
	return nil
}

// parse reads the options that are lists or patterns.
func (o *options) parse(only, sizes, callers, pattern string) (err error) {
	o.only = []string{relayName, listName, rosterName}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if o.sizes, err = integers(sizes); err != nil {
		return fmt.Errorf("-sizes: %w", err)
	}
	if o.callers, err = integers(callers); err != nil {
		return fmt.Errorf("-callers: %w", err)
	}
	if pattern != "" {
		if o.run, err = regexp.Compile(pattern); err != nil {
			return fmt.Errorf("-run: %w", err)
		}
	}
	return nil
}

// integers reads a list of non-negative integers.
func integers(s string) ([]int, error) {
	var all []int
	for _, field := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a list of numbers", s)
		}
		all = append(all, n)
	}
	return all, nil
}
