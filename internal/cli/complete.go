package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/mcp"
)

// completeTime is how long a shell waits for completions at most.
const completeTime = 700 * time.Millisecond

// running returns what a gateway that runs already lists of some kinds, and
// nothing if there is none or it takes too long: completion starts no servers.
func (p *program) running(ctx context.Context, kinds ...mcp.Kind) []item {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	p.readOnce()
	target, _, err := p.find(ctx)
	if err != nil || target == "" {
		return nil
	}
	g := &gateway{prog: p, url: target}
	if g.connect(ctx) != nil {
		return nil
	}
	defer g.close() //nolint:errcheck // nothing was written
	var all []item
	for _, kind := range kinds {
		items, err := g.items(ctx, kind)
		if err != nil {
			return nil
		}
		all = append(all, items...)
	}
	return all
}

// readOnce undoes that cobra reads the flags twice before it completes, and so adds
// each --config twice.
func (p *program) readOnce() {
	if half := len(p.configs) / 2; slices.Equal(p.configs[:half], p.configs[half:]) {
		p.configs = p.configs[:half]
	}
}

// completeNames completes the first argument with names of some kinds.
func (p *program) completeNames(kinds ...mcp.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, it := range p.running(cmd.Context(), kinds...) {
			if strings.HasPrefix(it.name, typed) {
				names = append(names, cobra.CompletionWithDesc(it.name, shorten(clean(it.about()), 60)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeCall completes the name of a tool, then the names of its arguments.
func (p *program) completeCall(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return p.completeNames(mcp.Tools)(cmd, args, typed)
	}
	var names []string
	for _, it := range p.running(cmd.Context(), mcp.Tools) {
		if it.name != args[0] {
			continue
		}
		for name, raw := range readSchema(it.Get("inputSchema")).Properties {
			if value, ok := strings.CutPrefix(typed, name+"="); ok {
				return completeValue(raw, name, value), cobra.ShellCompDirectiveNoFileComp
			}
			if !strings.HasPrefix(name+"=", typed) {
				continue
			}
			var about struct{ Description string }
			_ = json.Unmarshal(raw, &about) // a property may be no object: then it has none
			names = append(names, cobra.CompletionWithDesc(name+"=", shorten(clean(about.Description), 60)))
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// completeValue completes the value of an argument: one of those that its schema
// names.
func completeValue(raw []byte, name, typed string) []string {
	var about property
	_ = json.Unmarshal(raw, &about) // a property may be no object: then it names none
	values, titles := about.choices()
	if string(readSchema(raw).Type) == `"boolean"` {
		values, titles = []json.RawMessage{[]byte("true"), []byte("false")}, []string{"", ""}
	}
	var found []string
	for i, v := range values {
		if text := plainText(v); strings.HasPrefix(text, typed) {
			found = append(found, cobra.CompletionWithDesc(name+"="+text, shorten(clean(titles[i]), 60)))
		}
	}
	return found
}
