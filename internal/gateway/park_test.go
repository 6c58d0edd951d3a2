package gateway_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/server"
)

const formParams = `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`

// asking is a tool that asks, and tells what it was answered.
func asking(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	answer, err := r.Peer.Call(ctx, mcp.MethodElicit, jsontext.Value(formParams))
	if err != nil {
		return nil, err
	}
	return text("%s", answer.Raw)
}

// ask makes a request of a stateless client straight to the source.
func ask(ctx context.Context, f *front, principal, params string) (jsonrpc.Object, error) {
	obj, err := jsonrpc.ParseObject(jsontext.Value(params))
	if err != nil {
		return obj, err
	}
	return f.source.Do(ctx, &server.Request{
		Request: &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: mcp.MethodToolsCall, Params: obj, Principal: principal, Peer: deaf{}},
		Caller:  mcp.Caller{Version: mcp.V20260728, Capabilities: jsontext.Value(everyCapability)},
	})
}

// deaf is a peer that hears nothing.
type deaf struct{}

func (deaf) Notify(context.Context, string, jsontext.Value) error { return nil }

func (deaf) Call(context.Context, string, jsontext.Value) (jsonrpc.Object, error) {
	return jsonrpc.Object{}, errors.New("a client of a stateless version was asked")
}

func retry(state jsontext.Value) string {
	return fmt.Sprintf(`{"name":"custom","arguments":{"n":9007199254740993},"inputResponses":{"answer":{"action":"accept"}},"requestState":%s}`, state)
}

const firstTry = `{"name":"custom","arguments":{"n":9007199254740993}}`

func codeOf(err error) int {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return 0
	}
	return e.Code
}

// TestParkedClientLeaves: a call that waits for an answer ends at once when its
// client on pipes leaves.
func TestParkedClientLeaves(t *testing.T) {
	b := newBackend(mcp.V20251125)
	asked := make(chan error, 1)
	b.custom = func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
		_, err := r.Peer.Call(ctx, mcp.MethodElicit, jsontext.Value(formParams))
		asked <- err
		return text("over")
	}
	f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
	p := join(t, overPipe(t, f.server), false, mcp.V20260728, everyCapability)
	result, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"custom"}`)
	if kind, _ := result.Text("resultType"); err != nil || kind != "input_required" {
		t.Fatalf("%s, %v", result.Raw, err)
	}
	_ = p.wire.Close()
	if err := receive(t, "the end of the question", asked); err == nil {
		t.Error("somebody answered")
	}
	until(t, "no call goes on", func() bool { return f.servers.Get("s").Status().InFlight == 0 })
}

// TestParkedCallsLeaveRoom: calls that wait for answers do not keep others from a
// server. Over HTTP it is clear which of them a question is about.
func TestParkedCallsLeaveRoom(t *testing.T) {
	b := newBackend(mcp.V20251125)
	b.custom = asking
	f := newGateway(t, behind{name: "s", dial: overHTTP(t, b, mcphttp.HandlerOptions{}), http: true, opts: upstream.Options{MaxInFlight: 2, MaxQueue: 64}})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var states []jsontext.Value
	for i := range 8 {
		result, err := ask(ctx, f, fmt.Sprint(i), firstTry)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, result.Get("requestState"))
	}
	for i, state := range states {
		result, err := ask(ctx, f, fmt.Sprint(i), retry(state))
		if err != nil || !strings.Contains(result.Raw.String(), "accept") {
			t.Errorf("call %d: %s, %v", i, result.Raw, err)
		}
	}
	until(t, "no call goes on", func() bool { return f.servers.Get("s").Status().InFlight == 0 })
}

// TestRequestState: a requestState is good for one call of one principal, once and
// for ten minutes; all else is -32602. It is C-194 and C-218.
func TestRequestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125)
		b.custom = asking
		f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
		result, err := ask(t.Context(), f, "me", firstTry)
		if err != nil {
			t.Fatal(err)
		}
		state := result.Get("requestState")
		good, _ := jsonrpc.Text(state)
		raw, err := base64.RawURLEncoding.DecodeString(good)
		if err != nil {
			t.Fatal(err)
		}
		bad := map[string][2]string{
			"another principal": {"you", retry(state)},
			"other arguments":   {"me", strings.Replace(retry(state), "993", "992", 1)},
			"another tool":      {"me", strings.Replace(retry(state), "custom", "form", 1)},
			"not a string":      {"me", retry(jsontext.Value(`7`))},
			"empty":             {"me", retry(jsontext.Value(`""`))},
			"with an end":       {"me", retry(mcp.String(good + "AA"))},
		}
		for i := range raw {
			other := append([]byte(nil), raw...)
			other[i] ^= 1
			bad[fmt.Sprint("byte ", i)] = [2]string{"me", retry(mcp.String(base64.RawURLEncoding.EncodeToString(other)))}
		}
		for name, c := range bad {
			if _, err := ask(t.Context(), f, c[0], c[1]); codeOf(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("%s: %v, want code -32602", name, err)
			}
		}
		if result, err = ask(t.Context(), f, "me", retry(state)); err != nil || !strings.Contains(string(result.Raw), "accept") {
			t.Errorf("the right one: %s %v", result.Raw, err)
		}
		if _, err := ask(t.Context(), f, "me", retry(state)); codeOf(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("the second time: %v", err)
		}
		if result, err = ask(t.Context(), f, "me", firstTry); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Minute + time.Second)
		if _, err := ask(t.Context(), f, "me", retry(result.Get("requestState"))); codeOf(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("too late: %v", err)
		}
		synctest.Wait()
		if n := f.servers.Get("s").Status().InFlight; n != 0 {
			t.Errorf("%d calls go on", n)
		}
	})
}

// TestParkedCalls: what becomes of calls that wait for an answer.
func TestParkedCalls(t *testing.T) {
	start := func(t *testing.T, tool func(context.Context, *jsonrpc.Request) (jsontext.Value, error)) *front {
		b := newBackend(mcp.V20251125)
		b.custom = tool
		return newGateway(t, behind{name: "s", dial: overPipe(t, b)})
	}
	t.Run("64 of one principal", func(t *testing.T) {
		b := newBackend(mcp.V20251125)
		b.custom = asking
		// Over HTTP, where it is clear which of them each question is about.
		dial := overHTTP(t, b, mcphttp.HandlerOptions{Versions: []mcp.Version{b.version}})
		f := newGateway(t, behind{name: "s", dial: dial, http: true})
		var last jsonrpc.Object
		for range 64 {
			var err error
			if last, err = ask(t.Context(), f, "me", firstTry); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ask(t.Context(), f, "me", firstTry); codeOf(err) != jsonrpc.CodeInternal {
			t.Errorf("one more: %v", err)
		}
		if _, err := ask(t.Context(), f, "you", firstTry); err != nil {
			t.Errorf("another principal: %v", err)
		}
		if _, err := ask(t.Context(), f, "me", retry(last.Get("requestState"))); err != nil {
			t.Errorf("an answer: %v", err)
		}
		if _, err := ask(t.Context(), f, "me", firstTry); err != nil {
			t.Errorf("one in its place: %v", err)
		}
	})
	t.Run("asked again if there is no answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, asking)
			result, err := ask(t.Context(), f, "me", firstTry)
			if err != nil {
				t.Fatal(err)
			}
			again, err := ask(t.Context(), f, "me", strings.Replace(retry(result.Get("requestState")), `"answer"`, `"other"`, 1))
			if err != nil || string(again.Get("inputRequests")) != string(result.Get("inputRequests")) {
				t.Errorf("%s %v", again.Raw, err)
			}
			if result, err = ask(t.Context(), f, "me", retry(again.Get("requestState"))); err != nil {
				t.Errorf("%s %v", result.Raw, err)
			}
		})
	})
	t.Run("two questions at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() { _, _ = asking(ctx, r) })
				}
				both.Wait()
				return text("both")
			})
			params := firstTry
			for i := range 3 {
				result, err := ask(t.Context(), f, "me", params)
				if err != nil {
					t.Fatal(err)
				}
				if i == 2 != strings.Contains(string(result.Raw), "both") {
					t.Errorf("try %d: %s", i, result.Raw)
				}
				params = retry(result.Get("requestState"))
			}
		})
	})
	t.Run("the server ends meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, asking)
			result, err := ask(t.Context(), f, "me", firstTry)
			if err != nil {
				t.Fatal(err)
			}
			f.servers.Get("s").Restart()
			synctest.Wait()
			result, err = ask(t.Context(), f, "me", retry(result.Get("requestState")))
			if err != nil || !strings.Contains(string(result.Raw), `"isError":true`) {
				t.Errorf("%s %v", result.Raw, err)
			}
		})
	})
	t.Run("the client leaves while it is not parked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			f := start(t, func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
				_, _ = asking(ctx, r)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return nil, jsonrpc.ErrCanceled
			})
			result, err := ask(t.Context(), f, "me", firstTry)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if _, err := ask(ctx, f, "me", retry(result.Get("requestState"))); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if err := <-ended; !errors.Is(err, jsonrpc.ErrCanceled) {
				t.Errorf("the server's call ended with %v", err)
			}
		})
	})
	t.Run("the gateway closes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, asking)
			result, err := ask(t.Context(), f, "me", firstTry)
			if err != nil {
				t.Fatal(err)
			}
			f.source.Close()
			if _, err := ask(t.Context(), f, "me", retry(result.Get("requestState"))); codeOf(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("%v", err)
			}
		})
	})
}

// TestDeadlines is C-132 and C-133: progress and questions move a call's deadline,
// up to the most there is, and who sent no token hears none of it.
func TestDeadlines(t *testing.T) {
	tests := []struct {
		name string
		tool func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error)
		want string
		took time.Duration
	}{
		{"progress each 20 s for 150 s", func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			for range 7 {
				beat(ctx, r, 20*time.Second)
			}
			return text("done")
		}, "done", 140 * time.Second},
		{"progress for ever", func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			for ctx.Err() == nil {
				beat(ctx, r, time.Second)
			}
			return nil, jsonrpc.ErrCanceled
		}, `"isError":true`, 5 * time.Minute},
		{"silence", func(ctx context.Context, _ *jsonrpc.Request) (jsontext.Value, error) {
			<-ctx.Done()
			return nil, jsonrpc.ErrCanceled
		}, `"isError":true`, time.Minute},
		{"a question, and progress meanwhile", func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			beat(ctx, r, time.Second)
			var asks sync.WaitGroup
			asks.Go(func() { _, _ = asking(ctx, r) })
			beat(ctx, r, time.Second)
			asks.Wait()
			return text("done")
		}, "done", 4 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBackend(mcp.V20250618)
				b.custom = tt.tool
				f := newGateway(t, behind{name: "s", dial: overPipe(t, b), opts: upstream.Options{RequestTimeout: time.Minute, MaxTimeout: 5 * time.Minute}})
				p := join(t, overPipe(t, f.server), false, mcp.V20250618, everyCapability)
				p.answer = func(context.Context, string, jsonrpc.Object) (string, error) {
					time.Sleep(4*time.Minute - time.Second) // in a bubble: synctest.Test above
					return `{"action":"accept"}`, nil
				}
				began := time.Now()
				result, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"custom"}`)
				if err != nil || !strings.Contains(string(result.Raw), tt.want) {
					t.Errorf("%s %v", result.Raw, err)
				}
				if took := time.Since(began).Round(time.Second); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				for _, line := range p.take() {
					if strings.Contains(line, "notifications/progress") {
						t.Errorf("heard %s without having asked", line)
					}
				}
				synctest.Wait()
				if n := f.servers.Get("s").Status().InFlight; n != 0 {
					t.Errorf("%d calls go on", n)
				}
			})
		})
	}
}

// beat reports progress, and waits.
func beat(ctx context.Context, r *jsonrpc.Request, pause time.Duration) {
	meta, _ := jsonrpc.ParseObject(r.Params.Get("_meta"))
	_ = r.Peer.Notify(ctx, mcp.MethodProgress, fmt.Appendf(nil, `{"progressToken":%s,"progress":1}`, meta.Get(mcp.MetaProgressToken)))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
