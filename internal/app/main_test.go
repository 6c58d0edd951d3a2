package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/mcptest"
)

// gatewayVariable has the configuration of a child process that is a gateway.
const gatewayVariable = "ROSTER_TEST_GATEWAY"

func TestMain(m *testing.M) {
	if file := os.Getenv(gatewayVariable); file != "" {
		if err := serveOnPipes(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(loudVariable) != "" {
		if err := serveLoud(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := mcptest.Main(m)
	if code == 0 && !mcptest.IsPlug() {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// serveOnPipes runs a gateway on standard input and output.
func serveOnPipes(file string) error {
	cfg, _, err := config.Load([]string{file}, nil)
	if err != nil {
		return err
	}
	a, err := app.Start(context.Background(), app.Options{Config: cfg, Files: []string{file}, Version: "test"})
	if err != nil {
		return err
	}
	return errors.Join(a.ServeStdio(context.Background(), os.Stdin, os.Stdout), a.Close())
}

// rounds returns how often a test repeats something: few times, or many if
// ROSTER_STRESS is set.
func rounds(few, many int) int {
	if os.Getenv("ROSTER_STRESS") != "" {
		return many
	}
	return few
}
