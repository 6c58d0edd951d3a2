package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// suiteServer is the suite's server in the gateway's configuration.
const suiteServer = "suite"

// stopTime is how long the gateway may take to end.
const stopTime = 5 * time.Second

// through runs an auth scenario with a gateway as the client of the suite's server:
// this program logs in with the gateway's command as its user does, and uses what
// the gateway lists.
func through(ctx context.Context, roster, scenario, url string) (err error) {
	dir, err := os.MkdirTemp("", "through-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g := &gateway{roster: roster, file: filepath.Join(dir, "roster.json")}
	if err := g.configure(dir, scenario, url); err != nil {
		return err
	}
	stop, err := g.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	logins := 0
	for { // a login, one in place of it, and one for more, at the most
		err := g.use(ctx)
		if !errors.Is(err, errLogin) || logins == 3 {
			return err
		}
		before, err := g.state(ctx)
		if err != nil {
			return err
		}
		if err := g.login(ctx); err != nil {
			return err
		}
		logins++
		for now := before; now.Since.Equal(before.Since) && err == nil; now, err = g.state(ctx) {
			if err := pause(ctx); err != nil {
				return fmt.Errorf("the gateway does not notice the login: %w", err)
			}
		}
	}
}

// errLogin says that the server wants a login.
var errLogin = errors.New("the server wants a login")

type gateway struct{ roster, file, url string }

// configure writes the gateway's configuration, with who we are if the scenario
// says that.
func (g *gateway) configure(dir, scenario, url string) error {
	oauth := map[string]any{"clientMetadataUrl": metadataURL}
	if text := os.Getenv(envContext); text != "" {
		var told struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
			Key    string `json:"private_key_pem"`
			JWT    string `json:"valid_jwt"`
		}
		if err := json.Unmarshal([]byte(text), &told); err != nil {
			return fmt.Errorf("%s: %w", envContext, err)
		}
		for name, value := range map[string]string{"clientId": told.ID, "clientSecret": told.Secret, "privateKey": told.Key, "assertion": told.JWT} {
			if value != "" {
				oauth[name] = value
			}
		}
	}
	if strings.HasPrefix(scenario, "auth/client-credentials") {
		oauth["grant"] = "client_credentials"
	}
	data, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{suiteServer: map[string]any{"url": url, "prefix": "", "oauth": oauth}},
		"roster":     map[string]any{"stateDir": filepath.Join(dir, "state"), "tokenStore": "file"},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(g.file, data, 0o600)
}

var listening = regexp.MustCompile(`listening.*url="?(http://[^\s"]+)`)

// start starts the gateway.
func (g *gateway) start(ctx context.Context) (stop func(), err error) {
	cmd := exec.CommandContext(ctx, g.roster, "serve", "--config", g.file, "--listen", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTime
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	found := make(chan string, 1)
	ended := make(chan struct{})
	go func() { // ends with the process
		defer close(ended)
		lines := bufio.NewScanner(io.TeeReader(out, os.Stderr))
		for lines.Scan() {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
	}()
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		<-ended
		_ = cmd.Wait() // how it ended says nothing about the scenario
		cancel()
	}
	select {
	case g.url = <-found:
		return stop, nil
	case <-ended:
	case <-ctx.Done():
	}
	stop()
	return nil, errors.New("the gateway did not start")
}

var loginPage = regexp.MustCompile(`(?m)^ +(https?://\S+)$`)

// login logs in with the gateway's command, and opens the page that it prints.
func (g *gateway) login(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.roster, "auth", "login", suiteServer, "--no-browser", "--config", g.file)
	cmd.WaitDelay = stopTime
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(io.TeeReader(out, os.Stderr))
	for lines.Scan() {
		if m := loginPage.FindStringSubmatch(lines.Text()); m != nil {
			if err := visit(ctx, m[1]); err != nil {
				return err
			}
		}
	}
	return cmd.Wait()
}

// use lists the tools and calls each, when the gateway has them.
func (g *gateway) use(ctx context.Context) error {
	if err := g.settled(ctx); err != nil {
		return err
	}
	c, err := client.Connect(ctx, client.Options{
		Dial: func(ctx context.Context, in client.Incoming) (client.Wire, error) {
			return mcphttp.Dial(ctx, g.url, mcphttp.DialOptions{Handler: in.Handler, Notification: in.Notification, Gap: in.Gap})
		},
		HTTP: true, Info: jsontext.Value(`{"name":"roster-conformance-client","version":"1.0.0"}`),
	})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // the gateway ends next
	s := &session{c}
	tools, err := s.list(ctx, mcp.Tools)
	if err != nil {
		return err
	}
	for _, tool := range tools {
		result, err := s.callTool(ctx, tool.Key, jsontext.Value(`{}`))
		if err != nil {
			return fmt.Errorf("%s: %w", tool.Key, err)
		}
		if text := failure(result); strings.Contains(text, "needs a login") {
			return errLogin
		} else if text != "" {
			return fmt.Errorf("%s: %s", tool.Key, text)
		}
	}
	return nil
}

// failure returns what a tool says that went wrong; "": nothing did.
func failure(result jsonrpc.Object) string {
	if string(result.Get("isError")) != "true" {
		return ""
	}
	return string(result.Raw)
}

// settled waits until the server is up, or known not to be.
func (g *gateway) settled(ctx context.Context) error {
	for {
		now, err := g.state(ctx)
		switch {
		case err != nil:
			return err
		case now.State == "needs login":
			return errLogin
		case now.State == "ready", now.State == "degraded":
			return nil
		case now.State == "down":
			return errors.New(now.Error)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// server is how the gateway says that the server is.
type server struct {
	State, Error string
	Since        time.Time // when that began
}

// state asks the gateway how the server is.
func (g *gateway) state(ctx context.Context) (server, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(g.url, "mcp")+"status", nil)
	if err != nil {
		return server{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return server{}, err
	}
	defer resp.Body.Close()
	var st struct {
		Servers []server `json:"servers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		return server{}, err
	}
	if len(st.Servers) != 1 {
		return server{}, fmt.Errorf("the gateway has %d servers", len(st.Servers))
	}
	return st.Servers[0], nil
}
