package interop

import (
	"context"
	"encoding/json"
	"fmt"
)

// A client is one foreign client library in one era.
type client struct {
	name    string // as in the table
	library string
	era     string // legacy, auto, modern, or for the Go client a version
	npm     bool   // needs the npm peers
	// fixed clients declare capabilities of their own, so server-everything shows them other tools.
	fixed bool
	// slow clients make one connection per request, so they list and call tools and leave the rest.
	slow bool
	do   func(context.Context, job) (*report, error)
}

var clients = []client{
	{name: "go-sdk auto", library: "go", era: "auto", do: goClient},
	{name: "go-sdk 2025-11-25", library: "go", era: "legacy", do: goClient},
	{name: "go-sdk 2025-06-18", library: "go", era: "2025-06-18", do: goClient},
	{name: "go-sdk 2025-03-26", library: "go", era: "2025-03-26", do: goClient},
	{name: "go-sdk 2024-11-05", library: "go", era: "2024-11-05", do: goClient},
	{name: "npm sdk 1", library: "sdk1", era: "legacy", npm: true, do: script("sdk1.mjs")},
	{name: "npm client 2 legacy", library: "client2", era: "legacy", npm: true, do: script("client2.mjs")},
	{name: "npm client 2 auto", library: "client2", era: "auto", npm: true, do: script("client2.mjs")},
	{name: "npm client 2 modern", library: "client2", era: "modern", npm: true, do: script("client2.mjs")},
	{name: "inspector legacy", library: "inspector", era: "legacy", npm: true, fixed: true, slow: true, do: inspector},
	{name: "inspector modern", library: "inspector", era: "modern", npm: true, fixed: true, slow: true, do: inspector},
}

// reference is a client that declares to a server what roster declares to it.
var reference = clients[1]

// version is the protocol version that the client must end up with.
func (c client) version(modern bool) string {
	switch {
	case c.era == "legacy", c.era == "auto" && !modern:
		return "2025-11-25"
	case c.era == "auto", c.era == "modern":
		return "2026-07-28"
	}
	return c.era
}

// drops lists members of definitions that the client throws away when it speaks 2026-07-28, where they are no longer
// defined. A direct look at a legacy server has them.
func (c client) drops() []string {
	if c.npm && c.era != "legacy" {
		return []string{"execution"}
	}
	return nil
}

// script returns the client that one of the programs in clients/ is.
func script(name string) func(context.Context, job) (*report, error) {
	return func(ctx context.Context, j job) (*report, error) {
		in, err := json.Marshal(j)
		if err != nil {
			return nil, err
		}
		out, err := runCommand(ctx, in, "", environ(nil), findNPM().node, "clients/"+name)
		if err != nil {
			return nil, err
		}
		var r report
		if err := json.Unmarshal(out, &r); err != nil {
			return nil, fmt.Errorf("report of %s: %w", name, err)
		}
		return &r, nil
	}
}
