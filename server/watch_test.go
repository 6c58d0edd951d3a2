package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

func newWatched(t *testing.T) (*server.Memory, *server.Server) {
	t.Helper()
	m := server.NewMemory(server.MemoryOptions{Name: "s", Version: "1"})
	res, err := server.NewResource(jsontext.Value(`{"uri":"test://a","name":"a"}`),
		func(_ context.Context, _ *server.Request, uri string) (jsontext.Value, error) {
			return server.TextContents(uri, "text/plain", "a"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Resources.Add(res); err != nil {
		t.Fatal(err)
	}
	srv := server.New(m, server.Options{})
	t.Cleanup(srv.Close)
	return m, srv
}

func TestResourceUpdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, srv := newWatched(t)
		client := &fakeClient{}
		session := begin(t, srv, client, `{}`)
		do := func(method, params string) error {
			_, err := srv.Handle(t.Context(), request(t, client, session, method, params))
			return err
		}
		m.ResourceUpdated("test://a") // nobody watches
		if err := do("resources/subscribe", `{"uri":"TEST://a"}`); err != nil {
			t.Fatal(err)
		}
		m.ResourceUpdated("test://b")
		m.ResourceUpdated("test://a")
		synctest.Wait()
		if got, want := strings.Join(client.told, "\n"), `notifications/resources/updated {"uri":"TEST://a"}`; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		if err := do("resources/unsubscribe", `{"uri":"TEST://a"}`); err != nil {
			t.Fatal(err)
		}
		m.ResourceUpdated("test://a")
		synctest.Wait()
		if len(client.told) != 1 {
			t.Errorf("told %q after unsubscribing", client.told[1:])
		}
		err := do("resources/subscribe", `{"uri":"test://b"}`)
		if rpc, ok := errors.AsType[*jsonrpc.Error](err); !ok || rpc.Code != mcp.CodeResourceNotFound || string(rpc.Data) != `{"uri":"test://b"}` {
			t.Errorf("subscribing to what is not there: %v", err)
		}
		session.Close()
		synctest.Wait()
	})
}
