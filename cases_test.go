package roster_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// openCases are the numbers of testdata/cases.txt that no test names yet, with
// the reason. It only shrinks: a number that has a test must go.
var openCases = map[string]string{
	"C-127": "no test connects 200 clients at once to several paths: there is one path",
	"C-156": "no definition comes from anywhere but the operator's own file, where these variables are allowed",
}

// namedCase is how a test names a case: C-031, or TestC031_Something.
var namedCase = regexp.MustCompile(`\bC-([0-9]{3})\b|\bTestC([0-9]{3})_`)

// TestCases checks that each case of testdata/cases.txt, which has one per line,
// is named by a test: in its name or in a comment.
func TestCases(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	tested := casesInTests(t)
	var listed []string
	for line := range strings.Lines(string(text)) {
		number, title, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !namedCase.MatchString(number) || title == "" || slices.Contains(listed, number) {
			t.Fatalf("testdata/cases.txt: %q is not a new number and its title", line)
		}
		listed = append(listed, number)
		reason, open := openCases[number]
		switch file, ok := tested[number]; {
		case !ok && !open:
			t.Errorf("%s (%s) has no test", number, title)
		case ok && open:
			t.Errorf("%s (%s) has a test in %s: take it off openCases", number, title, file)
		case open && reason == "":
			t.Errorf("%s (%s) is open without a reason", number, title)
		}
	}
	for number := range openCases {
		if !slices.Contains(listed, number) {
			t.Errorf("%s is open, but not in testdata/cases.txt", number)
		}
	}
}

// casesInTests returns a test file for each number that one names.
func casesInTests(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case d.IsDir() || !isTest(path) || path == "cases_test.go":
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range namedCase.FindAllStringSubmatch(string(text), -1) {
			found["C-"+m[1]+m[2]] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isTest reports whether a file is a test: of Go, or a script for the program.
func isTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".txtar")
}
