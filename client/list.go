package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Limits bound one walk of a list. A zero field has the default.
type Limits struct {
	Pages  int           // requests; 0: 1,000
	Items  int           // 0: 50,000
	Bytes  int           // of all results; 0: 256 MiB
	Cursor int           // bytes of one cursor; 0: 64 KiB
	Time   time.Duration // of the whole walk; 0: 60 s
}

func (l Limits) withDefaults() Limits {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&l.Pages, 1000)
	set(&l.Items, 50_000)
	set(&l.Bytes, 256<<20)
	set(&l.Cursor, 64<<10)
	if l.Time == 0 {
		l.Time = 60 * time.Second
	}
	return l
}

// Guard names the bound that ended a walk.
type Guard string

// The guards of a walk. A list that one of them ended may not be the whole one.
const (
	GuardRepeat Guard = "repeated cursor"
	GuardPages  Guard = "too many pages"
	GuardItems  Guard = "too many items"
	GuardBytes  Guard = "too many bytes"
	GuardCursor Guard = "cursor too long"
	GuardTime   Guard = "too slow"
)

// List is what a walk over all pages of a list gathered.
type List struct {
	Kind mcp.Kind
	// Items are the definitions as the server wrote them, in its order. Of two
	// with the same name or URI the first is here. They share memory with each
	// other and must not be written to; the slice is the receiver's.
	Items []jsontext.Value
	// Pages is how many were read.
	Pages int
	// Tripped is the guard that ended the walk; "": it reached the end.
	Tripped Guard
	// Warnings say what was odd about the list but did no harm.
	Warnings []string
	// Hints has the shortest TTL of the pages, and whether all were public.
	// HasTTL says whether each page gave one, as stateless servers must.
	Hints  mcp.Hints
	HasTTL bool
}

// WalkError says that a walk did not reach the end of the list. Its list is what
// had been gathered.
type WalkError struct {
	Kind mcp.Kind
	Page int   // the page that failed, or the last one read; from 1
	Trip Guard // "": the page failed
	Err  error // why; nil if a guard tripped
	List List
}

func (e *WalkError) Error() string {
	if e.Trip != "" {
		return fmt.Sprintf("%s: list ended after page %d: %s", e.Kind.ListMethod(), e.Page, e.Trip)
	}
	return fmt.Sprintf("%s: page %d: %v", e.Kind.ListMethod(), e.Page, e.Err)
}

// Unwrap returns Err.
func (e *WalkError) Unwrap() error { return e.Err }

// List walks all pages of a list. A server that does not declare the kind, or
// does not know the method, has an empty list. If the walk does not reach the
// end, the error is a *WalkError: with a Trip, the returned list is what was
// gathered; without, it is empty.
//
// The end is a page without a cursor. A blank cursor is one like any other from
// a stateless server and the end from an older one.
func (c *Client) List(ctx context.Context, kind mcp.Kind, limits Limits) (List, error) {
	if !c.info.Lists(kind) {
		return List{Kind: kind}, nil
	}
	limits = limits.withDefaults()
	limited, cancel := context.WithTimeoutCause(ctx, limits.Time, errTooSlow)
	defer cancel()
	w := walk{
		client: c, limits: limits, list: List{Kind: kind, HasTTL: true, Hints: mcp.Hints{Public: true}},
		cursors: make(map[string]struct{}), keys: make(map[string]struct{}),
	}
	if err := w.run(limited); err != nil {
		if err.Trip == "" {
			return List{Kind: kind}, err
		}
		c.learnHeaders(&err.List)
		return err.List, err
	}
	list := w.done()
	c.learnHeaders(&list)
	return list, nil
}

var errTooSlow = errors.New("the walk of the list took too long")

// walk is one walk over a list.
type walk struct {
	client  *Client
	limits  Limits
	list    List
	cursors map[string]struct{} // that were followed
	keys    map[string]struct{} // of items in the list
	bytes   int
	twice   int // items left out because they were there already
}

// done returns the list as it is now.
func (w *walk) done() List {
	if w.twice > 0 {
		w.warn("%d items came more than once; the first of each is listed", w.twice)
	}
	if !w.list.HasTTL || w.list.Pages == 0 || !w.client.info.Version.Stateless() {
		w.list.Hints, w.list.HasTTL = mcp.Hints{}, false
	}
	return w.list
}

func (w *walk) warn(format string, args ...any) {
	const most = 20
	if len(w.list.Warnings) < most {
		w.list.Warnings = append(w.list.Warnings, fmt.Sprintf(format, args...))
	}
}

func (w *walk) fail(page int, err error) *WalkError {
	if errors.Is(err, errTooSlow) {
		return w.trip(GuardTime)
	}
	return &WalkError{Kind: w.list.Kind, Page: page, Err: err, List: w.done()}
}

func (w *walk) trip(g Guard) *WalkError {
	w.list.Tripped = g
	page := w.list.Pages
	return &WalkError{Kind: w.list.Kind, Page: page, Trip: g, List: w.done()}
}

func (w *walk) run(ctx context.Context) *WalkError {
	var cursor jsontext.Value // as it came; nil: the first page
	for {
		page := w.list.Pages + 1
		result, err := w.fetch(ctx, cursor)
		if page == 1 && isMethodNotFound(err) {
			w.list.HasTTL = false
			w.warn("the server declares %s but does not know %s", w.list.Kind.Capability(), w.list.Kind.ListMethod())
			return nil
		}
		if err != nil {
			return w.fail(page, err)
		}
		before := len(w.list.Items)
		guard, err := w.take(result)
		if err != nil {
			return w.fail(page, err)
		}
		next, more, err := w.next(result)
		switch {
		case err != nil:
			return w.fail(page, err)
		case guard != "":
			return w.trip(guard)
		case !more:
			return nil
		}
		if guard = w.follow(next); guard != "" {
			if guard == GuardRepeat && string(next) == `""` && len(w.list.Items) == before {
				w.warn("the cursor of the last page is an empty string, not absent")
				return nil
			}
			return w.trip(guard)
		}
		cursor = next
	}
}

func isMethodNotFound(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e.Code == jsonrpc.CodeMethodNotFound
}

// fetch asks for one page.
func (w *walk) fetch(ctx context.Context, cursor jsontext.Value) (jsonrpc.Object, error) {
	var params jsonrpc.Object
	if cursor != nil {
		params = object(mcp.Splice(jsonrpc.Object{}, mcp.Edit{Name: "cursor", Value: cursor}))
	}
	method := w.list.Kind.ListMethod()
	if timeout := w.client.opts.CallTimeout; timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, timeout, &TimeoutError{method, timeout})
		defer cancel()
		ctx = limited
	}
	result, err := w.client.do(ctx, Request{Method: method, Params: params})
	if err != nil {
		return result, err
	}
	if t, ok := result.Text("resultType"); ok && t != "complete" && w.client.info.Version.Stateless() {
		return result, &ResultError{method, fmt.Sprintf("has the type %q, not \"complete\"", t)}
	}
	return result, nil
}

// take adds the items of a page. The guard is the one that the page trips.
func (w *walk) take(result jsonrpc.Object) (Guard, error) {
	field, method := w.list.Kind.Field(), w.list.Kind.ListMethod()
	value := result.Get(field)
	var items []jsontext.Value
	switch {
	case value == nil:
		return "", &ResultError{method, "has no " + field}
	case value.Kind() == 'n':
		w.warn("page %d: %s is null, not an empty array", w.list.Pages+1, field)
	default:
		list, err := jsonrpc.Elements(value)
		if err != nil {
			return "", &ResultError{method, fmt.Sprintf("has %s that is %s, not an array", field, mcp.TypeName(value))}
		}
		items = list
	}
	w.list.Pages++
	w.hints(result)
	if w.bytes += len(result.Raw); w.bytes > w.limits.Bytes {
		return GuardBytes, nil
	}
	for _, item := range items {
		if !w.isNew(item) {
			w.twice++
			continue
		}
		if len(w.list.Items) == w.limits.Items {
			return GuardItems, nil
		}
		w.list.Items = append(w.list.Items, item)
	}
	return "", nil
}

func (w *walk) hints(result jsonrpc.Object) {
	h := readHints(result)
	if w.list.Pages == 1 {
		w.list.Hints.TTL = h.TTL
	}
	w.list.Hints.TTL = min(w.list.Hints.TTL, h.TTL)
	w.list.Hints.Public = w.list.Hints.Public && h.Public
	w.list.HasTTL = w.list.HasTTL && result.Find("ttlMs") >= 0
}

// isNew reports whether an item is the first with its name or URI. One without,
// which no client can use, is left for the receiver to judge.
func (w *walk) isNew(item jsontext.Value) bool {
	obj, err := jsonrpc.ParseObject(item)
	if err != nil {
		return true
	}
	key, ok := obj.Text(w.list.Kind.Key())
	if !ok {
		return true
	}
	if _, there := w.keys[key]; there {
		return false
	}
	w.keys[key] = struct{}{}
	return true
}

// next returns the cursor of the next page and whether there is one.
func (w *walk) next(result jsonrpc.Object) (jsontext.Value, bool, error) {
	cursor := result.Get("nextCursor")
	if cursor == nil || cursor.Kind() == 'n' {
		return nil, false, nil
	}
	text, ok := jsonrpc.Text(cursor)
	if !ok {
		return nil, false, &ResultError{w.list.Kind.ListMethod(), "has a nextCursor that is " + mcp.TypeName(cursor) + ", not a string"}
	}
	if strings.TrimSpace(text) == "" && !w.client.info.Version.Stateless() {
		return nil, false, nil
	}
	return cursor, true, nil
}

// follow decides whether a cursor may be followed.
func (w *walk) follow(cursor jsontext.Value) Guard {
	if len(cursor)-2 > w.limits.Cursor {
		return GuardCursor
	}
	text, _ := jsonrpc.Text(cursor) // next has read it
	if _, seen := w.cursors[text]; seen {
		return GuardRepeat
	}
	w.cursors[text] = struct{}{}
	if w.list.Pages == w.limits.Pages {
		return GuardPages
	}
	return ""
}
