package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/bridge"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// load reads the configuration as another process does.
func (g *gateway) load(env config.Lookup) *config.Config {
	g.t.Helper()
	cfg, _, err := config.Load([]string{g.file()}, env)
	if err != nil {
		g.t.Fatal(err)
	}
	return cfg
}

// bridged returns a client over pipes that is served over the socket of the gateway,
// and of the one that takes its place.
func (g *gateway) bridged(v mcp.Version) *mcptest.Caller {
	g.t.Helper()
	return mcptest.CallPipes(g.t, v, func(ctx context.Context, in io.Reader, out io.Writer) error {
		return bridge.Run(ctx, in, out, bridge.Options{
			Connect: func(ctx context.Context) (bridge.Conn, error) {
				tick := time.NewTicker(100 * time.Millisecond) // for clients whose gateway has gone for good, which must not keep a processor busy
				defer tick.Stop()
				for {
					cfg, _, err := config.Load([]string{g.file()}, nil)
					if err != nil {
						return nil, err
					}
					if seat, err := app.Join(ctx, cfg, []string{g.file()}); err == nil {
						return seat, nil
					}
					select {
					case <-tick.C:
					case <-ctx.Done():
						return nil, context.Cause(ctx)
					}
				}
			},
			Logger: slog.New(slog.NewTextHandler(g.log, nil)),
		})
	})
}

// TestBridge_GatewayEnds has the gateway of clients on pipes end and start again: they
// go on listing, calling and hearing of changes, whatever their version. The call that
// was under way ends with an error.
func TestBridge_GatewayEnds(t *testing.T) {
	release := make(chan struct{})
	b := answering(tools("t%d", 3)...)
	b.Do = func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		if name, _ := req.Params.Text("name"); name == "t1" {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return jsontext.Value(`{"content":[{"type":"text","text":"done"}]}`), nil
	}
	g := newGateway(t, "", piped("s", b.OnPipes(t)))
	g.ready()
	var callers []*mcptest.Caller
	answers := make(chan mcptest.Answer, len(mcp.Versions()))
	for i, v := range mcp.Versions() {
		c := g.bridged(v)
		callers = append(callers, c)
		list(t, c, mcp.Tools)
		if _, err := c.Listen(context.Background()); err != nil {
			t.Fatal(err)
		}
		go func() { // ends with the gateway
			a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"s__t1","arguments":{}}`)
			if err != nil {
				a.Error = err.Error()
			}
			answers <- a
		}()
		if err := b.WaitCount(bounded(t), mcp.MethodToolsCall, i+1); err != nil {
			t.Fatal(err)
		}
	}
	g.restart()
	for range callers {
		if a := <-answers; !strings.Contains(a.Error, "the gateway has ended") {
			t.Errorf("the call was answered %s%s", a.Result, a.Error)
		}
	}
	close(release)
	g.ready()
	for _, c := range callers {
		same(t, "after the restart", list(t, c, mcp.Tools), exposed("s", tools("t%d", 3)))
		if got := callTool(t, c, "s__t0"); !strings.Contains(got, "done") {
			t.Errorf("a call after the restart: %s", got)
		}
	}
	b.Set(mcp.Tools, tools("t%d", 4)...)
	b.Changed(bounded(t), mcp.Tools)
	for _, c := range callers {
		if err := c.Notes.Wait(bounded(t), mcp.Tools.ChangedMethod(), 1); err != nil {
			t.Errorf("%s: %v", c.Version, err)
		}
	}
}

// TestBridge_OtherConfig has a client whose environment has another value for a
// variable than the gateway's: it is not served with credentials that are not its own.
func TestBridge_OtherConfig(t *testing.T) {
	token := func(value string) config.Lookup {
		return func(name string) (string, bool) {
			if name != "TOKEN" || value == "" {
				return "", false
			}
			return value, true
		}
	}
	g := stoppedGateway(t)
	g.write(configuration("", remote("s", answering(tool("t")).OnHTTP(t).URL, `"headers":{"X-Token":"${TOKEN:-none}"}`)))
	g.run()
	join := func(value string) error {
		seat, err := app.Join(bounded(t), g.load(token(value)), []string{g.file()})
		if err == nil {
			must(t, seat.Close())
		}
		return err
	}
	if err := join("another"); err == nil || !errors.As(err, new(*app.OtherConfigError)) {
		t.Errorf("with another token: %v", err)
	}
	if err := join(""); err != nil {
		t.Errorf("with the same: %v", err)
	}
	// A file that the gateway has not read yet is no other configuration.
	g.write(configuration("", remote("s", answering(tool("t")).OnHTTP(t).URL)))
	if err := join(""); err != nil {
		t.Errorf("with a file that has just changed: %v", err)
	}
}
