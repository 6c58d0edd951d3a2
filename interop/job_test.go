package interop

import (
	"encoding/json"
	"fmt"
)

// A job is what a client is asked to do: connect, list everything, do each of the ops, close.
// The npm clients read it as JSON.
type job struct {
	URL       string            `json:"url,omitempty"`
	Transport string            `json:"transport,omitempty"` // "sse" for the HTTP transport of 2024-11-05
	Command   string            `json:"command,omitempty"`   // instead of URL
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"` // whole environment of Command

	Era          string          `json:"era"` // legacy, auto or modern; for the Go client also a version
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Ops          []op            `json:"ops,omitempty"`

	Want       map[string]int `json:"want,omitempty"` // list again until there are so many of each kind
	PatienceMs int            `json:"patienceMs,omitempty"`
	TimeoutMs  int            `json:"timeoutMs"` // for one request
}

// An op is one use of one thing: a request that names a tool, a prompt or a resource, or logging/setLevel, whose name
// is the level. A client that has no such request in its era does what there is instead: it listens, or it names the
// level in later calls.
type op struct {
	Method    string         `json:"method"`
	Name      string         `json:"name"` // URI for resources; the prompt for completion/complete
	Arguments map[string]any `json:"arguments,omitempty"`
	// Progress asks for progress, and Cancel also gives up when there is some.
	Progress bool `json:"progress,omitempty"`
	Cancel   bool `json:"cancel,omitempty"`
	// Heed is the kinds of events (the first words of what is in outcome.Heard) to report, and Await how many there will
	// be: the op lasts until they are there.
	Heed  []string `json:"heed,omitempty"`
	Await int      `json:"await,omitempty"`
}

func (o op) String() string { return o.Method + " " + o.Name }

// A report is what a client saw.
type report struct {
	Version      string                     `json:"version"` // empty if the client does not tell
	Capabilities map[string]json.RawMessage `json:"capabilities"`
	Tools        []json.RawMessage          `json:"tools"`
	Prompts      []json.RawMessage          `json:"prompts"`
	Resources    []json.RawMessage          `json:"resources"`
	Templates    []json.RawMessage          `json:"templates"`
	Pages        map[string]int             `json:"pages"` // by kind; 0 if the client does not tell
	Walks        int                        `json:"walks"` // 1 if the first lists were already whole
	Ops          []outcome                  `json:"ops"`
	ListChanged  map[string]int             `json:"listChanged"` // notifications by kind
	Error        string                     `json:"error"`       // what ended it early
}

// An outcome is the answer to an op.
type outcome struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Heard  []string        `json:"heard,omitempty"` // what the server said and asked meanwhile
}

// A kind is one of the four lists and how its items are identified.
type kind struct {
	name string // as in report
	id   string // member that identifies an item
	own  bool   // the gateway prefixes the id with the server's name
	of   func(*report) []json.RawMessage
}

var kinds = []kind{
	{"tools", "name", true, func(r *report) []json.RawMessage { return r.Tools }},
	{"prompts", "name", true, func(r *report) []json.RawMessage { return r.Prompts }},
	{"resources", "uri", false, func(r *report) []json.RawMessage { return r.Resources }},
	{"templates", "uriTemplate", false, func(r *report) []json.RawMessage { return r.Templates }},
}

// ids returns the identities of a report's items in their order.
func (k kind) ids(r *report) ([]string, error) {
	items := k.of(r)
	ids := make([]string, len(items))
	for i, raw := range items {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, fmt.Errorf("%s %d: %w", k.name, i, err)
		}
		if err := json.Unmarshal(members[k.id], &ids[i]); err != nil {
			return nil, fmt.Errorf("%s %d: member %s: %w", k.name, i, k.id, err)
		}
	}
	return ids, nil
}

// whole says whether a report has as many of each kind as wanted.
func (r *report) whole(want map[string]int) bool {
	for _, k := range kinds {
		if len(k.of(r)) < want[k.name] {
			return false
		}
	}
	return true
}
