package roster_test

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// modulePath is the path that go.mod gives this module.
const modulePath = "github.com/mcp-roster/roster"

// file is one parsed Go file of this module.
type file struct {
	name string // slash-separated, relative to the module's root
	dir  string // directory of name; "." is the root package
	test bool   // a _test.go file
	fset *token.FileSet
	ast  *ast.File
}

// pos says where n is, as file:line.
func (f file) pos(n ast.Node) string {
	p := f.fset.Position(n.Pos())
	return f.name + ":" + strconv.Itoa(p.Line)
}

// parseModule parses every Go file of the module under root, for every operating
// system: build constraints are not evaluated, so a rule holds for
// conn_windows.go on Linux too. Left out are nested modules, the directories
// that the go command ignores, and files marked "//go:build ignore".
func parseModule(t *testing.T, root string, mode parser.Mode) []file {
	t.Helper()
	var files []file
	walk := func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (ignoredDir(d.Name()) || hasGoMod(name)) {
				return fs.SkipDir
			}
			return nil
		}
		base := d.Name()
		if !strings.HasSuffix(base, ".go") || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return nil
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, name, nil, mode|parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if neverBuilt(parsed) {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		files = append(files, file{
			name: rel,
			dir:  path.Dir(rel),
			test: strings.HasSuffix(base, "_test.go"),
			fset: fset,
			ast:  parsed,
		})
		return nil
	}
	if err := filepath.WalkDir(root, walk); err != nil {
		t.Fatalf("parse the module: %v", err)
	}
	return files
}

// ignoredDir reports whether the go command skips directories of that name in "./...".
func ignoredDir(name string) bool {
	return name == "testdata" || name == "vendor" || name == "node_modules" ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// hasGoMod reports whether dir is the root of a module.
func hasGoMod(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// neverBuilt reports whether f is outside every package by "//go:build ignore".
func neverBuilt(f *ast.File) bool {
	for _, group := range f.Comments {
		if group.Pos() > f.Package {
			break
		}
		for _, c := range group.List {
			expr, err := constraint.Parse(c.Text)
			if tag, ok := expr.(*constraint.TagExpr); err == nil && ok && tag.Tag == "ignore" {
				return true
			}
		}
	}
	return false
}

// writeTree writes files, by slash-separated name, below a new directory and returns that.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// checkComplaints fails t unless got is one complaint that contains want, or none if want is "".
func checkComplaints(t *testing.T, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("complaints %q, want none", got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("complaints %q, want one with %q", got, want)
	}
}
