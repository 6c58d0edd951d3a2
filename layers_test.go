package roster_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A layer says what the non-test files of one package may import besides the
// standard library. Its three strings are the cells of the import table in
// ARCHITECTURE.md; TestLayersAreDocumented holds the two together.
type layer struct {
	dir        string // directory of the package
	ours       string // last elements of our own packages, separated by spaces; or allBut and such a list; or none
	thirdParty string // keys of thirdParty, separated by spaces; or anyModule; or none
}

const (
	none      = "-"
	allBut    = "all but "
	anyModule = "any"
)

// layers is the import table. A package imports only rows above its own.
var layers = []layer{
	{"registry", none, none},
	{"jsonrpc", none, "jsontext"},
	{"mcp", "jsonrpc", "jsontext"},
	{"stdio", "jsonrpc mcp", none},
	{"mcphttp", "jsonrpc mcp", "jsontext"},
	{"server", "registry jsonrpc mcp", "json jsontext jsonschema-go uritemplate"},
	{"client", "jsonrpc mcp stdio mcphttp", "jsontext backoff"},
	{"internal/mcptest", "registry jsonrpc mcp stdio mcphttp server client", "jsontext go-cmp go-internal goleak"},
	{"internal/config", "mcp", "hujson go-yaml go-toml fsnotify"},
	{"internal/clientfile", "mcp", "hujson go-yaml go-toml"},
	{"internal/state", "mcp", "jsontext go-keyring"},
	{"internal/auth", "mcp", "oauth2 go-sdk/oauthex jwt"},
	{"internal/policy", "mcp", "cel-go"},
	{"internal/catalog", "registry jsonrpc mcp state", "jsontext uritemplate"},
	{"internal/upstream", "registry jsonrpc mcp client stdio mcphttp", "jsontext backoff"},
	{"internal/gateway", "server catalog upstream policy registry jsonrpc mcp", "jsontext x/time"},
	{"internal/admin", "catalog upstream config registry mcp", none},
	{"internal/obs", "gateway upstream mcphttp", "prometheus otel"},
	{"internal/demo", "server stdio mcphttp registry mcp jsonrpc", "jsontext uritemplate"},
	{"internal/bridge", "jsonrpc mcp stdio", none},
	{"internal/app", "all but cli", anyModule},
	{"internal/cli", "admin app auth bridge client clientfile config demo mcphttp mcp jsonrpc", "cobra jsontext pflag x/term"},
	{"cmd/roster", "cli", none},
}

// thirdParty maps the short names in the table to import paths; each allows the
// path itself and what is below it.
var thirdParty = map[string]string{
	"backoff":        "github.com/cenkalti/backoff",
	"cel-go":         "github.com/google/cel-go",
	"cobra":          "github.com/spf13/cobra",
	"fsnotify":       "github.com/fsnotify/fsnotify",
	"go-cmp":         "github.com/google/go-cmp",
	"go-internal":    "github.com/rogpeppe/go-internal",
	"go-keyring":     "github.com/zalando/go-keyring",
	"go-sdk/oauthex": "github.com/modelcontextprotocol/go-sdk/oauthex",
	"go-toml":        "github.com/pelletier/go-toml",
	"go-yaml":        "github.com/goccy/go-yaml",
	"goleak":         "go.uber.org/goleak",
	"hujson":         "github.com/tailscale/hujson",
	"jsonschema-go":  "github.com/google/jsonschema-go",
	"jwt":            "github.com/golang-jwt/jwt",
	"json":           "github.com/go-json-experiment/json",
	"jsontext":       "github.com/go-json-experiment/json/jsontext",
	"oauth2":         "golang.org/x/oauth2",
	"otel":           "go.opentelemetry.io",
	"pflag":          "github.com/spf13/pflag",
	"prometheus":     "github.com/prometheus/client_golang",
	"uritemplate":    "github.com/yosida95/uritemplate",
	"x/term":         "golang.org/x/term",
	"x/time":         "golang.org/x/time",
}

// rawJSON lists the packages in which JSON that somebody else wrote stays bytes:
// the library and the request path. They never import encoding/json, which
// loses key order, number spelling and duplicate keys.
var rawJSON = []string{
	"registry", "jsonrpc", "mcp", "stdio", "mcphttp", "server", "client",
	"internal/catalog", "internal/upstream", "internal/gateway",
}

// testOnly is imported by test files and by nothing else.
const testOnly = "internal/mcptest"

func TestImportsFollowLayers(t *testing.T) {
	for _, complaint := range importComplaints(parseModule(t, ".", parser.ImportsOnly)) {
		t.Error(complaint)
	}
}

// importComplaints returns one line for each import in files that the table does not allow.
func importComplaints(files []file) []string {
	var complaints []string
	unknown := map[string]bool{}
	for _, f := range files {
		row, ok := layerOf(f.dir)
		switch {
		case ok || f.dir == ".":
		case !unknown[f.dir]:
			unknown[f.dir] = true
			complaints = append(complaints, fmt.Sprintf(
				"%s: package is not in the import table: add a row for it to layers_test.go and to ARCHITECTURE.md", f.dir))
			continue
		default:
			continue
		}
		if f.test {
			continue
		}
		for _, spec := range f.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				panic(err) // the parser accepts only valid literals
			}
			if why := row.refuses(imported); why != "" {
				complaints = append(complaints, fmt.Sprintf("%s: %s imports %s: %s", f.pos(spec), f.dir, imported, why))
			}
		}
	}
	return complaints
}

// layerOf returns the row of the package in dir.
func layerOf(dir string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return l.dir == dir })
	if i < 0 {
		return layer{ours: none, thirdParty: none}, false
	}
	return layers[i], true
}

// refuses says why a package of this layer may not import the package with that
// path; "" means that it may.
func (l layer) refuses(imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	dir, ours := strings.CutPrefix(imported, modulePath+"/")
	switch {
	case ours && dir == testOnly:
		return "only tests may"
	case ours && !l.allowsOurs(dir):
		return "the import table allows of ours: " + l.ours
	case ours:
		return ""
	case within(imported, "encoding/json") && slices.Contains(rawJSON, l.dir):
		return "JSON stays bytes in this package: use jsontext"
	case !strings.Contains(first, "."): // the standard library
		return ""
	case !l.allowsThirdParty(imported):
		return "the import table allows of third parties: " + l.thirdParty
	}
	return ""
}

// allowsOurs reports whether the row lets its package import our package in dir.
func (l layer) allowsOurs(dir string) bool {
	if _, known := layerOf(dir); !known {
		return false
	}
	list, inverted := strings.CutPrefix(l.ours, allBut)
	return slices.Contains(strings.Fields(list), path.Base(dir)) != inverted
}

// allowsThirdParty reports whether the row lets its package import a package of another module.
func (l layer) allowsThirdParty(imported string) bool {
	if l.thirdParty == anyModule {
		return true
	}
	return slices.ContainsFunc(strings.Fields(l.thirdParty), func(name string) bool {
		return name != none && within(imported, thirdParty[name])
	})
}

// within reports whether the import path is prefix or below it.
func within(importPath, prefix string) bool {
	return importPath == prefix || strings.HasPrefix(importPath, prefix+"/")
}

// TestLayersGoOneWay checks the table itself: every name in it means something,
// and a row names only rows above it.
func TestLayersGoOneWay(t *testing.T) {
	above := map[string]bool{none: true}
	for _, l := range layers {
		list, inverted := strings.CutPrefix(l.ours, allBut)
		for _, name := range strings.Fields(list) {
			if !inverted && !above[name] {
				t.Errorf("%s may import %s, which is not a row above it", l.dir, name)
			}
		}
		for _, name := range strings.Fields(l.thirdParty) {
			if name != none && name != anyModule && thirdParty[name] == "" {
				t.Errorf("%s may import %s, which has no path in thirdParty", l.dir, name)
			}
		}
		if base := path.Base(l.dir); above[base] && l.dir != "cmd/roster" {
			t.Errorf("two rows are called %s", base)
		}
		above[path.Base(l.dir)] = true
	}
	for _, dir := range append(slices.Clone(rawJSON), testOnly) {
		if _, ok := layerOf(dir); !ok {
			t.Errorf("%s has a rule but no row", dir)
		}
	}
}

func TestLayersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := importTable(string(text))
	for i := range max(len(layers), len(documented)) {
		switch {
		case i >= len(layers):
			t.Errorf("ARCHITECTURE.md has a row that layers_test.go lacks: %+v", documented[i])
		case i >= len(documented):
			t.Errorf("ARCHITECTURE.md lacks the row %+v", layers[i])
		case layers[i] != documented[i]:
			t.Errorf("row %d of the import table:\n layers_test.go  %+v\n ARCHITECTURE.md %+v", i+1, layers[i], documented[i])
		}
	}
}

// TestPackagesAreDocumented: the tree in ARCHITECTURE.md has every package and
// nested module, and what is not there yet is marked.
func TestPackagesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tree, _ := strings.Cut(string(text), "## Packages\n")
	_, tree, _ = strings.Cut(tree, "```\n")
	tree, _, _ = strings.Cut(tree, "```")
	planned := make(map[string]bool)
	for line := range strings.Lines(tree) {
		if dir, about, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			planned[dir] = strings.HasPrefix(strings.TrimSpace(about), "(planned) ")
		}
	}
	want := []string{"bench", "conformance", "interop", "tools"}
	for _, l := range layers {
		want = append(want, l.dir)
	}
	for _, dir := range want {
		marked, ok := planned[dir]
		if !ok {
			t.Errorf("the tree in ARCHITECTURE.md lacks %s", dir)
			continue
		}
		if _, err := os.Stat(dir); marked == (err == nil) {
			t.Errorf("%s is marked as planned: %v; look for it: %v", dir, marked, err)
		}
		delete(planned, dir)
	}
	for dir := range planned {
		t.Errorf("the tree in ARCHITECTURE.md has %s, which the import table lacks", dir)
	}
}

// TestCallPathIsDocumented: the functions that ARCHITECTURE.md leads a call
// through are where it says, and are short.
func TestCallPathIsDocumented(t *testing.T) {
	const most = 45 // lines
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\|[ 1-5]+\\| `\\(\\*(\\w+)\\)\\.(\\w+)`[^|]*\\| (\\S+\\.go) \\|").FindAllStringSubmatch(string(text), -1)
	if len(rows) != 6 {
		t.Fatalf("%d rows of functions, want 6", len(rows))
	}
	for _, row := range rows {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, row[3], nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		i := slices.IndexFunc(f.Decls, func(d ast.Decl) bool {
			fn, ok := d.(*ast.FuncDecl)
			return ok && fn.Name.Name == row[2] && fn.Recv != nil && types.ExprString(fn.Recv.List[0].Type) == "*"+row[1]
		})
		if i < 0 {
			t.Errorf("%s has no (*%s).%s", row[3], row[1], row[2])
			continue
		}
		if n := files.Position(f.Decls[i].End()).Line - files.Position(f.Decls[i].Pos()).Line + 1; n > most {
			t.Errorf("%s: (*%s).%s has %d lines, more than %d", row[3], row[1], row[2], n, most)
		}
	}
}

// importTable returns the rows of the markdown table whose first heading is "package".
func importTable(markdown string) []layer {
	var rows []layer
	inTable := false
	for line := range strings.Lines(markdown) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cell), "`", "")
		}
		switch {
		case len(cells) != 3:
			inTable = false
		case cells[0] == "package":
			inTable = true
		case inTable && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, layer{cells[0], cells[1], cells[2]})
		}
	}
	return rows
}

func TestImportComplaints(t *testing.T) {
	const ours = modulePath + "/"
	tests := []struct {
		name string
		file string
		src  string // what follows the package clause
		want string // part of the only complaint; "" means none
	}{
		{"allowed", "mcp/a.go", `import _ "` + ours + `jsonrpc"`, ""},
		{"not allowed", "jsonrpc/a.go", `import _ "` + ours + `mcp"`, "jsonrpc/a.go:2: jsonrpc imports"},
		{"strangers", "internal/catalog/a.go", `import _ "` + ours + `internal/upstream"`, "allows of ours: registry jsonrpc mcp state"},
		{"all but", "internal/app/a.go", `import _ "` + ours + `internal/gateway"`, ""},
		{"the exception", "internal/app/a.go", `import _ "` + ours + `internal/cli"`, "all but cli"},
		{"the root", "mcp/a.go", `import _ "` + modulePath + `"`, "allows of third parties"},
		{"no row", "util/a.go", "", "util: package is not in the import table"},
		{"no row, only tests", "util/a_test.go", "", "util: package is not in the import table"},
		{"import of a package without a row", "internal/app/a.go", `import _ "` + ours + `util"`, "allows of ours"},
		{"other system", "registry/a_windows.go", `import _ "golang.org/x/sys/windows"`, "allows of third parties: -"},
		{"build tag", "registry/a.go", `import _ "golang.org/x/sys/windows"`, "allows of third parties: -"},
		{"third party", "mcp/a.go", `import _ "github.com/go-json-experiment/json/jsontext"`, ""},
		{"its parent", "mcp/a.go", `import _ "github.com/go-json-experiment/json"`, "allows of third parties: jsontext"},
		{"its version", "client/a.go", `import _ "github.com/cenkalti/backoff/v5"`, ""},
		{"only its prefix", "client/a.go", `import _ "github.com/cenkalti/backoffice"`, "allows of third parties"},
		{"any", "internal/app/a.go", `import _ "example.com/x"`, ""},
		{"standard JSON in the library", "server/a.go", `import _ "encoding/json"`, "JSON stays bytes"},
		{"standard JSON v2 in the library", "server/a.go", `import _ "encoding/json/v2"`, "JSON stays bytes"},
		{"standard JSON in a library test", "server/a_test.go", `import _ "encoding/json"`, ""},
		{"standard JSON elsewhere", "internal/config/a.go", `import _ "encoding/json"`, ""},
		{"test help in a test", "registry/a_test.go", `import _ "` + ours + `internal/mcptest"`, ""},
		{"test help in the product", "internal/app/a.go", `import _ "` + ours + `internal/mcptest"`, "only tests may"},
		{"root package", "a.go", `import _ "` + ours + `registry"`, "allows of ours: -"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := "package p\n" + tt.src + "\n"
			if tt.name == "build tag" {
				src = "//go:build windows\n\n" + src
			}
			got := importComplaints(parseModule(t, writeTree(t, map[string]string{tt.file: src}), parser.ImportsOnly))
			checkComplaints(t, got, tt.want)
		})
	}
}

// Files that belong to no package of this module follow no rule.
func TestImportComplaintsLeaveOut(t *testing.T) {
	const bad = "package p\nimport _ \"example.com/x\"\n"
	root := writeTree(t, map[string]string{
		"bench/go.mod":           "module example.com/bench\n",
		"bench/deep/a.go":        bad,
		"registry/testdata/a.go": bad,
		".hidden/a.go":           bad,
		"_draft/a.go":            bad,
		"registry/generate.go":   "//go:build ignore\n\n" + bad,
		"registry/_a.go":         bad,
	})
	checkComplaints(t, importComplaints(parseModule(t, root, parser.ImportsOnly)), "")
}

func TestImportTable(t *testing.T) {
	const text = "# A\n\n| flag | a | b |\n| --- | --- | --- |\n| x | y | z |\n\n" +
		"| package | may import | third party |\n|---|---|---|\n| `mcp` | jsonrpc | `jsontext` |\n\n| p | q | r |\n"
	if got, want := importTable(text), []layer{{"mcp", "jsonrpc", "jsontext"}}; !slices.Equal(got, want) {
		t.Errorf("importTable = %+v, want %+v", got, want)
	}
}
