// Command roster is one MCP endpoint in front of many MCP servers.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcp-roster/roster/internal/cli"
)

var errInterrupted = errors.New("interrupted")

func main() {
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
