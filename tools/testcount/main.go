// Command testcount runs a command that prints test2json events, such as
// "go test -json ./...", shows them like a plain "go test" would, and counts.
//
//	testcount [-o file] command [argument ...]
//
// Its last line is "N passed, N failed". With -o the two numbers are also added
// to the end of the file, as a line "N N". Tests and subtests count; a package
// that fails without a failing test, because it does not build or ends early,
// counts as one failure. The exit code is 1 if the command or a test failed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	out := flag.String("o", "", "also add the counts to this `file`")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	code, err := run(*out, flag.Args(), os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run runs args and reports the exit code for it.
func run(out string, args []string, stdout, stderr io.Writer) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	c := newCounter(stdout)
	readErr := c.read(pipe)
	waitErr := cmd.Wait()
	if readErr != nil {
		return 0, fmt.Errorf("read events: %w", readErr)
	}
	if exit := (*exec.ExitError)(nil); waitErr != nil && !errors.As(waitErr, &exit) {
		return 0, waitErr
	}
	if c.skipped > 0 {
		fmt.Fprintf(stdout, "%d skipped\n", c.skipped)
	}
	fmt.Fprintf(stdout, "%d passed, %d failed\n", c.passed, c.failed)
	if out != "" {
		if err := appendCounts(out, c); err != nil {
			return 0, err
		}
	}
	if c.failed > 0 || waitErr != nil {
		return 1, nil
	}
	return 0, nil
}

// appendCounts adds a line with what c counted to the end of the file.
func appendCounts(name string, c *counter) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %d\n", c.passed, c.failed)
	return errors.Join(err, f.Close())
}
