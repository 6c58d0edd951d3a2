package client

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// headerKeyword marks a parameter, in a tool's inputSchema, that requests over
// HTTP repeat in a header field.
const headerKeyword = "x-mcp-header"

// paramHeader is one such parameter.
type paramHeader struct {
	name string   // behind Mcp-Param-
	path []string // of properties, from the arguments
}

// learnHeaders keeps what the tools say of header fields and leaves out those
// whose marks break the rules, as a client over HTTP must (2026-07-28,
// basic/transports/streamable-http, Custom Headers from Tool Parameters).
func (c *Client) learnHeaders(list *List) {
	if list.Kind != mcp.Tools || !c.opts.HTTP || !c.info.Version.Stateless() {
		return
	}
	table := make(map[string][]paramHeader)
	list.Items = slices.DeleteFunc(list.Items, func(item jsontext.Value) bool {
		if !bytes.Contains(item, []byte(headerKeyword)) {
			return false
		}
		tool, err := jsonrpc.ParseObject(item)
		if err != nil {
			return false
		}
		name, _ := tool.Text("name")
		headers, err := readParamHeaders(tool.Get("inputSchema"))
		if err != nil {
			list.Warnings = append(list.Warnings, fmt.Sprintf("tool %q is left out: %v", name, err))
			return true
		}
		if len(headers) > 0 {
			table[name] = headers
		}
		return false
	})
	c.headers.Store(&table)
}

// readParamHeaders finds the marked parameters of an inputSchema.
func readParamHeaders(schema jsontext.Value) ([]paramHeader, error) {
	var found headerSearch
	if err := found.schema(schema, nil, true); err != nil {
		return nil, err
	}
	return found.headers, nil
}

type headerSearch struct {
	headers []paramHeader
}

var errMarkPlace = errors.New(headerKeyword + " stands where no parameter of fixed place is")

// schema looks through one schema. fixed: properties alone lead to it.
func (s *headerSearch) schema(v jsontext.Value, path []string, fixed bool) error {
	obj, err := jsonrpc.ParseObject(v)
	if err != nil {
		return nil // true, false, or nothing that the protocol knows
	}
	for name, value := range obj.All() {
		switch name {
		case headerKeyword:
			if !fixed || len(path) == 0 {
				return errMarkPlace
			}
			err = s.add(obj, value, path)
		case "properties":
			err = s.properties(value, path, fixed)
		case "default", "examples", "enum", "const":
		default:
			err = s.other(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *headerSearch) properties(v jsontext.Value, path []string, fixed bool) error {
	obj, err := jsonrpc.ParseObject(v)
	if err != nil {
		return nil
	}
	for name, sub := range obj.All() {
		if err := s.schema(sub, append(slices.Clip(path), name), fixed); err != nil {
			return err
		}
	}
	return nil
}

// other looks for marks under a keyword that is not properties.
func (s *headerSearch) other(v jsontext.Value) error {
	switch v.Kind() {
	case '{':
		return s.schema(v, nil, false)
	case '[':
		items, err := jsonrpc.Elements(v)
		if err != nil {
			return nil
		}
		for _, item := range items {
			if err := s.other(item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *headerSearch) add(schema jsonrpc.Object, mark jsontext.Value, path []string) error {
	name, ok := jsonrpc.Text(mark)
	if !ok || !isToken(name) {
		return fmt.Errorf("%s of %s is not a header field name", headerKeyword, strings.Join(path, "."))
	}
	switch t, _ := schema.Text("type"); t {
	case "string", "integer", "boolean":
	default:
		return fmt.Errorf("%s of %s stands at a type other than string, integer or boolean", headerKeyword, strings.Join(path, "."))
	}
	for _, h := range s.headers {
		if strings.EqualFold(h.name, name) {
			return fmt.Errorf("%s %q is used twice", headerKeyword, name)
		}
	}
	s.headers = append(s.headers, paramHeader{name: name, path: path})
	return nil
}

// isToken reports whether s is a field name (RFC 9110, section 5.1).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// value returns the header field for the arguments of a call; false if they
// have no value for it.
func (p *paramHeader) value(arguments jsontext.Value) (string, bool) {
	v := arguments
	for _, name := range p.path {
		if len(v) == 0 {
			return "", false
		}
		obj, err := jsonrpc.ParseObject(v)
		if err != nil {
			return "", false
		}
		v = obj.Get(name)
	}
	if len(v) == 0 {
		return "", false
	}
	switch v.Kind() {
	case '"':
		s, ok := jsonrpc.Text(v)
		return mcp.EncodeHeader(s), ok
	case '0':
		return decimal(string(v)), true
	case 't', 'f':
		return string(v), true
	}
	return "", false
}

// decimal returns an integer without fraction and exponent, and any other
// number as it is, for the server to refuse.
func decimal(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	const most = 1 << 53
	if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < most {
		return strconv.FormatInt(int64(f), 10)
	}
	return text
}
