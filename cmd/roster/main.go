// Command roster is one MCP endpoint in front of many MCP servers.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/mcp-roster/roster/internal/cli"
)

var errInterrupted = errors.New("interrupted")

// gcPercent lets the heap grow to five times what lives before it is collected. What
// lives is a few MiB, and messages that pass through are garbage at once:
// collecting at twice that would cost more CPU than the memory is worth.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with the process
		<-signals
		cancel(errInterrupted)
		<-signals
		os.Exit(cli.ExitError)
	}()
	os.Exit(cli.Run(ctx, cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		LookupEnv: os.LookupEnv, Executable: os.Executable,
	}))
}
