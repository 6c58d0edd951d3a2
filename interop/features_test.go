package interop

// What a server and a client say to each other beside requests of the client and their answers. What only clients of
// newer versions can do comes last, so that what is before it has the same place for all of them.

// goFeatures is what the Go servers have. roots is whether the client's roots are to be had: roster has none for a
// server of older versions that all clients share.
func goFeatures(name string, roots bool) []use {
	ask := func(what, answer, heard, since string) use {
		return use{
			op:   op{Method: "tools/call", Name: "ask", Arguments: map[string]any{"what": what}},
			want: answer, heard: []string{heard}, since: since,
		}
	}
	item := name + "://item/00000"
	all := []use{
		ask("form", `colour\":\"r`, "elicit form Colour?", ""),
		ask("sampling", "hello there", "sample Say <hello>", ""),
		{
			op:    op{Method: "tools/call", Name: "count", Arguments: map[string]any{}, Progress: true},
			want:  "counted",
			heard: []string{"progress 0.5/2.5 counting", "progress 1.5/2.5 counting", "progress 2.5/2.5 counting"},
		},
		{op: op{Method: "tools/call", Name: "wait", Arguments: map[string]any{}, Progress: true, Cancel: true}, want: `"cancelled":true`},
		{op: op{Method: "tools/call", Name: "waited", Arguments: map[string]any{}}, want: "the wait was cancelled"},
		{op: op{Method: "logging/setLevel", Name: "warning"}, want: "{}"},
		{op: op{Method: "tools/call", Name: "log", Arguments: map[string]any{}}, want: "logged", heard: []string{"log warning of warning", "log error of error"}},
		{op: op{Method: "completion/complete", Name: "greeting", Arguments: map[string]any{"who": "A"}}, want: `"values":["Ada","Alan"]`},
		{op: op{Method: "resources/subscribe", Name: item}, want: "{}"},
		{op: op{Method: "tools/call", Name: "touch", Arguments: map[string]any{"uri": item}}, want: "touched", heard: []string{"updated " + item}},
		{op: op{Method: "resources/unsubscribe", Name: item}, want: "{}"},
	}
	if roots {
		all = append(all, use{
			op:   op{Method: "tools/call", Name: "ask", Arguments: map[string]any{"what": "roots"}},
			want: "file:///interop",
		})
	}
	return append(all, ask("url", `action\":\"accept\"`, "elicit url https://example.com/?a=1&b=2", "2025-11-25"))
}

// everythingFeatures is what server-everything has for clients that declare sampling and both forms of elicitation. Its
// log messages come on a timer and belong to no call. resources says whether its resources are to be had.
func everythingFeatures(resources bool) []use {
	all := []use{
		{
			op:   op{Method: "tools/call", Name: "trigger-elicitation-request", Arguments: map[string]any{}},
			want: "User provided the requested information", heard: []string{"elicit form Please provide inputs for the following fields:"},
		},
		{
			op:   op{Method: "tools/call", Name: "trigger-sampling-request", Arguments: map[string]any{"prompt": "Say <hello>"}},
			want: "hello there", heard: []string{"sample Resource trigger-sampling-request context: Say <hello>"},
		},
		{
			op:   op{Method: "tools/call", Name: "trigger-long-running-operation", Arguments: map[string]any{"duration": 0.1, "steps": 2}, Progress: true},
			want: "Long running operation completed", heard: []string{"progress 1/2", "progress 2/2"},
		},
		{
			op:   op{Method: "completion/complete", Name: "completable-prompt", Arguments: map[string]any{"department": "Eng"}},
			want: `"Engineering"`,
		},
	}
	if resources {
		const uri = "demo://resource/static/document/features.md"
		toggle := op{Method: "tools/call", Name: "toggle-subscriber-updates", Arguments: map[string]any{}}
		all = append(all,
			use{op: op{Method: "resources/subscribe", Name: uri}, want: "{}"},
			use{op: toggle, want: "Started", heard: []string{"updated " + uri}},
			use{op: toggle, want: "Stopped"},
			use{op: op{Method: "resources/unsubscribe", Name: uri}, want: "{}"})
	}
	return append(all, use{
		op: op{Method: "tools/call", Name: "trigger-url-elicitation", Arguments: map[string]any{
			"url": "https://example.com/?a=1&b=2", "message": "Log in", "elicitationId": "e-1",
		}},
		want: "User completed the URL elicitation", heard: []string{"elicit url https://example.com/?a=1&b=2"}, since: "2025-11-25",
	})
}
