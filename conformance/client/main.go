// Command client does, with the library's client, what the scenario of the
// conformance suite wants of a client. The suite starts it with the URL of its
// server as the last argument and the scenario's name in the environment.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// The environment that the suite gives to a client.
const (
	envScenario = "MCP_CONFORMANCE_SCENARIO"
	envContext  = "MCP_CONFORMANCE_CONTEXT"
)

// capabilities is what this client says it can answer.
var capabilities = jsontext.Value(`{"elicitation":{},"roots":{},"sampling":{}}`)

// authScenario is what the names of scenarios about credentials begin with. In all
// of them a client lists the tools and calls each.
const authScenario = "auth/"

// limit is how long one scenario may take.
const limit = 25 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	roster := flag.String("roster", "", "program that is the client in the scenarios of auth, in place of this one")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: client [-roster PROGRAM] URL")
		os.Exit(2)
	}
	var err error
	scenario := os.Getenv(envScenario)
	if *roster != "" && strings.HasPrefix(scenario, authScenario) {
		err = through(ctx, *roster, scenario, flag.Arg(0))
	} else {
		err = run(ctx, scenario, flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// scenarios says what to do once connected.
var scenarios = map[string]func(ctx context.Context, s *session) error{
	"initialize":                          listTools,
	"tools_call":                          addNumbers,
	"elicitation-sep1034-client-defaults": callEachTool,
	"sse-retry":                           callEachTool,
	"request-metadata":                    declare,
	"sep-2322-client-request-state":       keepState,
	"http-standard-headers":               useEverything,
	"http-custom-headers":                 callAsTold,
	"http-invalid-tool-headers":           callEachTool,
	"json-schema-ref-no-deref":            listTools,
	"json-schema-2020-12-preservation":    echoSchema,
}

func run(ctx context.Context, scenario, url string) (err error) {
	act, ok := scenarios[scenario]
	if strings.HasPrefix(scenario, authScenario) {
		act, ok = callEachTool, true
	}
	if !ok {
		return fmt.Errorf("the scenario %q is not known", scenario)
	}
	login, err := newLogin(scenario, url)
	if err != nil {
		return err
	}
	defer login.Close()
	c, err := client.Connect(ctx, client.Options{
		Dial: func(ctx context.Context, in client.Incoming) (client.Wire, error) {
			return mcphttp.Dial(ctx, url, mcphttp.DialOptions{
				Authorizer: login, Handler: in.Handler, Notification: in.Notification, Gap: in.Gap,
			})
		},
		HTTP:         true,
		Info:         jsontext.Value(`{"name":"roster-conformance-client","version":"1.0.0"}`),
		Capabilities: capabilities,
		Handler:      asked{},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return act(ctx, &session{c})
}

// session is a connection, with the calls that scenarios make.
type session struct{ client *client.Client }

// call calls a method, and again with answers for as long as the server wants any.
func (s *session) call(ctx context.Context, method string, params jsontext.Value) (jsonrpc.Object, error) {
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	var answers []mcp.Edit
	for range maxRounds {
		result, err := s.client.Call(ctx, client.Request{
			Method: method, Params: obj, Edits: answers, Caller: mcp.Caller{Capabilities: capabilities},
		})
		if err != nil {
			return result, err
		}
		if kind, _ := result.Text("resultType"); kind != "input_required" {
			return result, nil
		}
		if answers, err = answer(result); err != nil {
			return result, err
		}
	}
	return jsonrpc.Object{}, fmt.Errorf("%s: the server still asks after %d rounds", method, maxRounds)
}

func (s *session) callTool(ctx context.Context, name string, arguments jsontext.Value) (jsonrpc.Object, error) {
	return s.call(ctx, mcp.MethodToolsCall, fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, mcp.String(name), arguments))
}

// list lists the things of a kind, by their keys.
func (s *session) list(ctx context.Context, kind mcp.Kind) ([]mcp.Definition, error) {
	list, err := s.client.List(ctx, kind, client.Limits{})
	if err != nil {
		return nil, err
	}
	items := make([]mcp.Definition, 0, len(list.Items))
	for _, raw := range list.Items {
		item, err := mcp.ParseDefinition(kind, raw)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
