package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Exit codes.
const (
	ExitOK    = 0
	ExitError = 1 // the command failed, or a tool said that it did
	ExitUsage = 2 // the command line cannot be understood
)

const exitCodes = `Exit codes:
  0  done
  1  failed, or the tool said that it failed
  2  the command line is wrong`

// Process is what a command has of the process it runs in. All fields are
// required.
type Process struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// LookupEnv is os.LookupEnv.
	LookupEnv func(name string) (value string, ok bool)
	// Executable is os.Executable. The demo starts its servers with it.
	Executable func() (string, error)
}

// Run runs the command of a command line and returns the exit code. The command
// ends early, and in order, when ctx does.
func Run(ctx context.Context, p Process) int {
	prog := &program{Process: p, out: &sink{w: p.Stdout}}
	root := prog.root()
	err := root.ExecuteContext(ctx)
	if err == nil && prog.out.err != nil {
		err = fmt.Errorf("write the result: %w", prog.out.err)
	}
	if err == nil {
		return ExitOK
	}
	if errors.Is(err, errSaid) {
		return ExitError
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	writeln(p.Stderr, "roster: "+explain(err))
	if _, ok := errors.AsType[*usageError](err); ok {
		return ExitUsage
	}
	return ExitError
}

// program is one run of a command.
type program struct {
	Process
	out      *sink // Stdout, for results
	configs  []string
	url      string
	access   access        // of the gateway that is asked
	typed    *bufio.Reader // what is typed on Stdin; nil: nobody was asked yet
	anywhere bool          // say nothing of this machine in descriptions
	output   string
	logLevel string
}

// errSaid is returned by commands that have already printed why they failed.
var errSaid = errors.New("failed")

// usageError says that the command line cannot be understood.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// usagef returns an error about the command line.
func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// explain returns an error in words for whoever typed the command.
func explain(err error) string {
	if e, ok := errors.AsType[client.HTTPError](err); ok && e.HTTPStatus() == 401 {
		return "the gateway wants to know who is calling: set " + keyVariable + " to a key of that gateway"
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == mcp.CodeMissingCapability {
		return e.Message + ": it may want to ask the user (elicitation), which needs a terminal as standard input"
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Message
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Sprintf("nothing answers at %v: is the gateway running?", e.Addr)
	}
	if e, ok := errors.AsType[client.HTTPError](err); ok && e.HTTPStatus() == 404 {
		return err.Error() + ": is this the URL of an MCP server? That of Roster ends with /mcp"
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return e.Path + " does not exist"
	}
	return strings.TrimSpace(err.Error())
}

// version returns the program's version as the Go toolchain recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
