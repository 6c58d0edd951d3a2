package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// adminTime is how long a gateway may take to say how it is.
const adminTime = 10 * time.Second

// gateway is what a command asks: a gateway that runs, or the one that the
// command has started for itself.
type gateway struct {
	prog   *program
	url    string
	app    *app.App // nil: it is not ours
	client *client.Client

	startupWait time.Duration // how long servers of ours may take
}

// open finds the gateway, or starts one.
func (p *program) open(ctx context.Context) (*gateway, error) {
	target, conf, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	g := &gateway{prog: p, url: target}
	if target == "" {
		if err := g.start(ctx, conf); err != nil {
			return nil, err
		}
	}
	if err := g.connect(ctx); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// find returns the URL of the gateway to ask; "" with the configuration if none
// runs.
func (p *program) find(ctx context.Context) (string, *configuration, error) {
	if p.url != "" {
		target, err := endpointURL(p.url)
		key, _ := p.LookupEnv(keyVariable)
		p.access = access{key: key}
		return target, nil, err
	}
	conf, err := p.load()
	if err != nil {
		return "", nil, err
	}
	if transport, ok := app.Find(ctx, conf.Config, conf.files); ok {
		p.access = access{transport: transport}
		return admin.LocalURL, conf, nil
	}
	return "", conf, nil
}

// endpointURL checks a URL that was typed. One without a path gets that of MCP.
func endpointURL(typed string) (string, error) {
	u, err := url.Parse(typed)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", usagef("--url must be a URL such as http://127.0.0.1:7678/mcp, not %q", typed)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/mcp"
	}
	return u.String(), nil
}

// start starts the servers of the configuration for this command.
func (g *gateway) start(ctx context.Context, conf *configuration) error {
	g.prog.report(conf.problems)
	g.startupWait = conf.Roster.StartupWait
	log, err := g.prog.logger("")
	if err != nil {
		return err
	}
	g.app, err = app.Start(context.WithoutCancel(ctx), app.Options{
		Config: conf.Config, Problems: conf.problems, Files: conf.files, Private: true,
		Version: version(), Logger: log,
	})
	if err != nil {
		return err
	}
	g.own(admin.LocalURL)
	return nil
}

// settle waits until the servers that were started for this command are up, or
// known to be down, or were waited for long enough. A
// request does not need it; what says how things are does.
func (g *gateway) settle(ctx context.Context) error {
	if g.app == nil {
		return nil
	}
	const step = 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, g.startupWait)
	defer cancel()
	defer g.prog.progress(ctx, func() string { return "starting " + strings.Join(g.starting(), ", ") })()
	for len(g.starting()) > 0 {
		select {
		case <-time.After(step):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil
			}
			return context.Cause(ctx)
		}
	}
	return nil
}

// starting returns the servers that are neither up nor down yet.
func (g *gateway) starting() []string {
	var names []string
	for _, s := range g.app.Status().Servers {
		if s.State == "starting" {
			names = append(names, s.Name)
		}
	}
	return names
}

func (g *gateway) connect(ctx context.Context) error {
	defer g.prog.progress(ctx, func() string { return "connecting to the gateway" })()
	var err error
	var capabilities []byte
	if g.prog.asks() {
		capabilities = []byte(canAnswer)
	}
	g.client, err = client.Connect(ctx, client.Options{
		HTTP: true, Capabilities: capabilities, Info: fmt.Appendf(nil, `{"name":"roster-cli","version":%q}`, version()),
		Dial: func(ctx context.Context, in client.Incoming) (client.Wire, error) {
			return mcphttp.Dial(ctx, g.url, mcphttp.DialOptions{
				Header: g.prog.access.header(), Transport: g.prog.access.transport,
				Notification: in.Notification, Handler: in.Handler, Route: in.Route, Gap: in.Gap,
			})
		},
	})
	return err
}

// own makes the gateway that was started the one to ask, under a URL.
func (g *gateway) own(url string) { g.url, g.prog.access = url, access{transport: g.app.Transport()} }

// close ends the connection and what was started for it.
func (g *gateway) close() error {
	var errs []error
	if g.client != nil {
		errs = append(errs, g.client.Close())
	}
	if g.app != nil {
		errs = append(errs, g.app.Close())
	}
	return errors.Join(errs...)
}

// with runs a command against a gateway.
func (p *program) with(ctx context.Context, command func(g *gateway) error) error {
	g, err := p.open(ctx)
	if err != nil {
		return err
	}
	err = command(g)
	if end := g.close(); err == nil {
		err = end
	}
	return err
}

// get asks a route beside a gateway's endpoint. v gets the JSON; nil: the
// answer does not matter.
func (p *program) get(ctx context.Context, endpoint, route string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	return p.ask(ctx, http.MethodGet, endpoint, route, v)
}

// ask is get with a method and as much time as ctx has.
func (p *program) ask(ctx context.Context, method, endpoint, route string, v any) error {
	body, err := p.fetch(ctx, method, endpoint, route)
	if err != nil {
		return err
	}
	defer body.Close()
	if v == nil {
		return nil
	}
	const most = 64 << 20
	if err := json.NewDecoder(io.LimitReader(body, most)).Decode(v); err != nil {
		return fmt.Errorf("%s of %s: not answered as a Roster gateway does: %w", route, endpoint, err)
	}
	return nil
}

// fetch returns the body that a route answers with.
func (p *program) fetch(ctx context.Context, method, endpoint, route string) (io.ReadCloser, error) {
	base, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	base.RawQuery = ""
	ref, err := base.Parse(route)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, ref.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = p.access.header()
	asker := http.Client{Transport: p.access.transport}
	resp, err := asker.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var failure admin.Failure
	const most = 64 << 10
	if json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&failure) == nil && failure.Error != "" {
		return nil, errors.New(failure.Error)
	}
	return nil, &routeError{ref.Redacted(), resp.Status}
}

// routeError says that a route was not answered with what was asked for.
type routeError struct{ url, status string }

func (e *routeError) Error() string {
	return fmt.Sprintf("%s answered %s: is that a Roster gateway?", e.url, e.status)
}

// complain prints which servers are missing from what was listed, on a
// gateway that can tell.
func (g *gateway) complain(ctx context.Context) {
	var st admin.Status
	if g.prog.get(ctx, g.url, "status", &st) != nil {
		return
	}
	for _, s := range st.Servers {
		if reported := g.app != nil && s.State == "disabled"; s.Error != "" && !reported {
			writef(g.prog.Stderr, "roster: server %q is %s: %s\n", s.Name, s.State, clean(s.Error))
		}
	}
}

// mostRounds bounds how often a server may ask for more before it answers.
const mostRounds = 20

// request sends a request and returns its result. What the server asks the user
// meanwhile is answered on the terminal, if there is one.
func (g *gateway) request(ctx context.Context, method string, params []byte) (jsonrpc.Object, error) {
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return obj, err
	}
	name, _ := obj.Text("name")
	req := client.Request{Method: method, Params: obj}
	if g.prog.asks() {
		req.Caller.Capabilities = []byte(canAnswer)
	}
	for range mostRounds {
		result, err := g.send(ctx, req, name)
		if err != nil {
			return result, err
		}
		if kind, _ := result.Text("resultType"); kind != "input_required" {
			return result, nil
		}
		if req.Edits, err = g.answers(ctx, cmp.Or(name, "the server"), result); err != nil {
			return result, err
		}
	}
	return jsonrpc.Object{}, fmt.Errorf("the server asked for more input %d times, and has not answered", mostRounds)
}

// send sends a request once.
func (g *gateway) send(ctx context.Context, req client.Request, name string) (jsonrpc.Object, error) {
	var told progressText
	what := strings.TrimSpace(req.Method + " " + name)
	stop := g.prog.progress(ctx, func() string { return "waiting for " + what + told.get() })
	defer stop()
	req.Message = told.hear
	req.Handler = asked{g.prog, cmp.Or(name, "the server"), stop}
	return g.client.Call(ctx, req)
}

// answers answers what a result asks for (2026-07-28, basic/patterns/mrtr), and
// returns what is added to the request for it.
func (g *gateway) answers(ctx context.Context, who string, result jsonrpc.Object) ([]mcp.Edit, error) {
	var edits []mcp.Edit
	if state := result.Get("requestState"); state != nil {
		edits = append(edits, mcp.Edit{Name: "requestState", Value: state})
	}
	questions := result.Get("inputRequests")
	if questions == nil {
		return edits, nil
	}
	all, err := jsonrpc.ParseObject(questions)
	if err != nil {
		return nil, fmt.Errorf("the server asks for input in a way that is not understood: %w", err)
	}
	var given []member
	for key, raw := range all.All() {
		question, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("the server asks for input in a way that is not understood: %w", err)
		}
		method, _ := question.Text("method")
		params, err := jsonrpc.ParseObject(question.Get("params"))
		if err != nil {
			return nil, fmt.Errorf("the server asks for input in a way that is not understood: %w", err)
		}
		answer, err := g.prog.answer(ctx, who, method, params)
		if err != nil {
			return nil, err
		}
		given = append(given, member{key, answer})
	}
	return append(edits, mcp.Edit{Name: "inputResponses", Value: objectOf(given)}), nil
}
