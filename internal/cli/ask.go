package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// errNoAnswer says that the user ended the input instead of answering.
var errNoAnswer = errors.New("no answer was given")

// asks reports whether there is somebody to ask.
func (p *program) asks() bool { return isTerminal(p.Stdin) }

// line prints a question and returns the line that is typed.
func (p *program) line(ctx context.Context, question string) (string, error) {
	if p.typed == nil {
		p.typed = bufio.NewReader(p.Stdin)
	}
	write(p.Stderr, question)
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	go func() { // ends with the line, or with the process
		text, err := p.typed.ReadString('\n')
		read <- answer{text, err}
	}()
	select {
	case a := <-read:
		if a.err != nil && (a.text == "" || !errors.Is(a.err, io.EOF)) {
			writeln(p.Stderr)
			return "", errNoAnswer
		}
		return strings.TrimRight(a.text, "\r\n"), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// form is fields that somebody is asked to fill in.
type form struct {
	*program
	schema *schema
	names  []string // in order
	about  map[string]property
}

// property is what a schema says of a field to whoever fills it in.
type property struct {
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Enum        []json.RawMessage `json:"enum"`
	OneOf       []struct {
		Const json.RawMessage `json:"const"`
		Title string          `json:"title"`
	} `json:"oneOf"`
}

// formOf makes a form of the properties of a schema.
func (p *program) formOf(raw []byte) form {
	f := form{program: p, schema: readSchema(raw), about: make(map[string]property)}
	object, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return f
	}
	properties, err := jsonrpc.ParseObject(object.Get("properties"))
	if err != nil {
		return f
	}
	for name, value := range properties.All() {
		var about property
		_ = json.Unmarshal(value, &about) // a property may be true: then it says nothing
		f.names, f.about[name] = append(f.names, name), about
	}
	return f
}

// choices are the values that a field can have; nil: any.
func (p property) choices() (values []json.RawMessage, titles []string) {
	for _, v := range p.Enum {
		values, titles = append(values, v), append(titles, "")
	}
	for _, one := range p.OneOf {
		if one.Const != nil {
			values, titles = append(values, one.Const), append(titles, one.Title)
		}
	}
	return values, titles
}

// plainText is a JSON value without the quotes of a string.
func plainText(raw []byte) string {
	if s, ok := jsonrpc.Text(raw); ok {
		return s
	}
	return string(raw)
}

// ask asks for one field until it gets a value that fits, as JSON; nil if the field
// is left out.
func (f form) ask(ctx context.Context, name string) ([]byte, error) {
	about := f.about[name]
	required := slices.Contains(f.schema.Required, name)
	values, titles := about.choices()
	question := clean(name)
	if text := clean(about.Title + " " + about.Description); text != "" {
		question += " (" + text + ")"
	}
	for i, title := range titles {
		question += fmt.Sprintf("\n  %s %s", clean(plainText(values[i])), f.paint(f.Stderr, dim, clean(title)))
	}
	if len(titles) > 0 {
		question += "\n" + clean(name)
	}
	switch {
	case about.Default != nil:
		question += " [" + clean(plainText(about.Default)) + "]"
	case !required:
		question += " [none]"
	}
	for {
		text, err := f.line(ctx, question+": ")
		if err != nil {
			return nil, err
		}
		value, why := f.value(name, text, values, required)
		if why == "" {
			return value, nil
		}
		writeln(f.Stderr, why)
	}
}

// value makes what was typed into a value, or says why it is none.
func (f form) value(name, text string, choices []json.RawMessage, required bool) (value []byte, why string) {
	types := f.schema.typesOf(name)
	onlyText := len(types) == 0 || types["string"]
	trimmed := strings.TrimSpace(text)
	switch {
	case text == "" && f.about[name].Default != nil:
		return f.about[name].Default, ""
	case text == "" && !required:
		return nil, ""
	case text == "" && !onlyText:
		return nil, "a value is needed"
	case types["boolean"] && slices.Contains([]string{"y", "yes", "true"}, strings.ToLower(trimmed)):
		return []byte("true"), ""
	case types["boolean"] && slices.Contains([]string{"n", "no", "false"}, strings.ToLower(trimmed)):
		return []byte("false"), ""
	case len(choices) > 0:
		for _, c := range choices {
			if plainText(c) == trimmed {
				return c, ""
			}
		}
		return nil, "that is none of the choices"
	case f.schema.takes(name, []byte(trimmed)):
		return []byte(trimmed), ""
	case onlyText:
		return mcp.String(text), ""
	case types["array"] && !types["object"]:
		return textList(trimmed), ""
	}
	var names []string
	for t := range types {
		names = append(names, t)
	}
	slices.Sort(names)
	return nil, "a value of type " + strings.Join(names, " or ") + " is needed, as JSON"
}

// textList makes an array of texts with commas between.
func textList(text string) []byte {
	list := []byte{'['}
	for i, part := range strings.Split(text, ",") {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, mcp.String(strings.TrimSpace(part))...)
	}
	return append(list, ']')
}

// askMissing asks for the arguments that a tool needs and that are not given, if
// there is somebody to ask.
func (c *call) askMissing(ctx context.Context, inputSchema []byte) error {
	if !c.asks() || len(inputSchema) == 0 {
		return nil
	}
	f := c.formOf(inputSchema)
	for _, name := range f.schema.Required {
		if slices.ContainsFunc(c.pairs, func(p pair) bool { return p.key == name }) {
			continue
		}
		value, err := f.ask(ctx, name)
		if err != nil {
			return fmt.Errorf("ask for the argument %s: %w", name, err)
		}
		c.pairs = append(c.pairs, pair{name, string(value), true})
	}
	return nil
}

// elicit asks the user what a server wants to know, and returns the result for it
// (2026-07-28, client/elicitation). who is whom the question is from.
func (p *program) elicit(ctx context.Context, who string, params jsonrpc.Object) ([]byte, error) {
	message, _ := params.Text("message")
	writef(p.Stderr, "%s asks: %s\n", p.paint(p.Stderr, bold, clean(who)), printable(p.Stderr, message))
	var result []byte
	var err error
	if mode, _ := params.Text("mode"); mode == "url" {
		result, err = p.elicitVisit(ctx, params)
	} else {
		result, err = p.elicitForm(ctx, params.Get("requestedSchema"))
	}
	if errors.Is(err, errNoAnswer) {
		return []byte(`{"action":"cancel"}`), nil
	}
	return result, err
}

// elicitVisit asks the user to open a page.
func (p *program) elicitVisit(ctx context.Context, params jsonrpc.Object) ([]byte, error) {
	page, _ := params.Text("url")
	host := "an address that is none"
	if u, err := url.Parse(page); err == nil && u.Host != "" {
		host = u.Host
	}
	writef(p.Stderr, "It wants you to open this page, at %s:\n  %s\n", p.paint(p.Stderr, bold, clean(host)), clean(page))
	for {
		text, err := p.line(ctx, "Will you? [yes/no]: ")
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return []byte(`{"action":"accept"}`), nil
		case "n", "no":
			return []byte(`{"action":"decline"}`), nil
		}
	}
}

// elicitForm has a form filled in, and shows it before it is sent.
func (p *program) elicitForm(ctx context.Context, schema []byte) ([]byte, error) {
	f := p.formOf(schema)
	for {
		var content []member
		for _, name := range f.names {
			value, err := f.ask(ctx, name)
			if err != nil {
				return nil, err
			}
			if value != nil {
				content = append(content, member{name, value})
			}
		}
		text, err := p.line(ctx, fmt.Sprintf("Send %s? [yes/no/edit]: ", clean(string(objectOf(content)))))
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return append(append([]byte(`{"action":"accept","content":`), objectOf(content)...), '}'), nil
		case "n", "no":
			return []byte(`{"action":"decline"}`), nil
		}
	}
}

// canAnswer is what this client declares if there is somebody to ask.
const canAnswer = `{"elicitation":{"form":{},"url":{}}}`

// answer answers a request of a server to this client.
func (p *program) answer(ctx context.Context, who, method string, params jsonrpc.Object) ([]byte, error) {
	switch {
	case method != mcp.MethodElicit:
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server sent %s, which this command cannot answer", method)
	case !p.asks():
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server asks the user something, and there is no terminal to ask on")
	}
	return p.elicit(ctx, who, params)
}

// asked answers what a server asks while a request of ours is under way.
type asked struct {
	prog  *program
	who   string
	quiet func() // ends what is drawn on the terminal
}

// Handle implements jsonrpc.Handler.
func (a asked) Handle(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	a.quiet()
	return a.prog.answer(ctx, a.who, req.Method, req.Params)
}
