package roster_test

import (
	"fmt"
	"go/ast"
	"path"
	"strconv"
	"strings"
	"testing"
)

// bubbleMark, in a comment on the line of a time.Sleep, says that every caller
// of that code is inside a synctest bubble. A reason has to follow.
const bubbleMark = "in a bubble: "

// A test that sleeps on the real clock is slow when the machine is fast and
// fails when it is slow. Tests wait for what they want to see, with a bound; a
// test of timing runs in a testing/synctest bubble, whose clock costs nothing.
func TestTestsDoNotSleep(t *testing.T) {
	for _, complaint := range sleepComplaints(parseModule(t, ".", 0)) {
		t.Error(complaint)
	}
}

// sleepComplaints returns one line for each time.Sleep in a test, or in a test
// helper, that is neither inside a function literal given to synctest.Test nor
// marked with bubbleMark.
func sleepComplaints(files []file) []string {
	var complaints []string
	for _, f := range files {
		if !f.test && f.dir != testOnly {
			continue
		}
		clock, synctest := importName(f.ast, "time"), importName(f.ast, "testing/synctest")
		marked := markedLines(f)
		var visit func(n ast.Node) bool
		visit = func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && refersTo(sel, clock, "Sleep") && !marked[f.fset.Position(sel.Pos()).Line] {
				complaints = append(complaints, fmt.Sprintf(
					"%s: time.Sleep outside a synctest bubble: wait for the event itself, or mark the line \"// %sREASON\"", f.pos(sel), bubbleMark))
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fun, ok := call.Fun.(*ast.SelectorExpr); !ok || !refersTo(fun, synctest, "Test") {
				return true
			}
			for _, arg := range call.Args {
				if _, bubble := arg.(*ast.FuncLit); !bubble {
					ast.Inspect(arg, visit)
				}
			}
			return false
		}
		ast.Inspect(f.ast, visit)
	}
	return complaints
}

// importName returns the name that f knows an imported package by; "" if f does not import it.
func importName(f *ast.File, importPath string) string {
	for _, spec := range f.Imports {
		if got, err := strconv.Unquote(spec.Path.Value); err != nil || got != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// refersTo reports whether sel is pkg.name.
func refersTo(sel *ast.SelectorExpr, pkg, name string) bool {
	id, ok := sel.X.(*ast.Ident)
	return ok && pkg != "" && id.Name == pkg && sel.Sel.Name == name
}

// markedLines returns the lines of f with a bubbleMark and a reason.
func markedLines(f file) map[int]bool {
	marked := map[int]bool{}
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if _, reason, ok := strings.Cut(c.Text, bubbleMark); ok && strings.TrimSpace(reason) != "" {
				marked[f.fset.Position(c.Pos()).Line] = true
			}
		}
	}
	return marked
}

func TestSleepComplaints(t *testing.T) {
	const head = "package p\nimport (\n\"testing\"\n\"testing/synctest\"\n\"time\"\n)\n"
	tests := []struct {
		name string
		file string
		src  string
		want string // part of the only complaint; "" means none
	}{
		{"bare", "registry/a_test.go", head + "func TestA(t *testing.T) { time.Sleep(1) }", "registry/a_test.go:7: time.Sleep"},
		{"as a value", "registry/a_test.go", head + "var nap = time.Sleep", "registry/a_test.go:7: time.Sleep"},
		{"renamed", "registry/a_test.go", "package p\nimport clock \"time\"\nfunc nap() { clock.Sleep(1) }", "a_test.go:3"},
		{"in a bubble", "registry/a_test.go", head + "func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { go func() { time.Sleep(1) }() }) }", ""},
		{"beside a bubble", "registry/a_test.go", head + "func TestA(t *testing.T) { synctest.Test(t, func(*testing.T) {}); time.Sleep(1) }", "a_test.go:7"},
		{"marked", "registry/a_test.go", head + "func nap() {\ntime.Sleep(1) // in a bubble: only TestA calls it\n}", ""},
		{"marked without a reason", "registry/a_test.go", head + "func nap() {\ntime.Sleep(1) // in a bubble: \n}", "a_test.go:8"},
		{"test helper", "internal/mcptest/a.go", head + "func nap() { time.Sleep(1) }", "internal/mcptest/a.go:7"},
		{"product", "registry/a.go", head + "func nap() { time.Sleep(1) }", ""},
		{"another Sleep", "registry/a_test.go", "package p\nfunc nap(c clock) { c.Sleep(1) }", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := writeTree(t, map[string]string{tt.file: tt.src})
			checkComplaints(t, sleepComplaints(parseModule(t, root, 0)), tt.want)
		})
	}
}
