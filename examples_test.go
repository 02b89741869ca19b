package tidemark_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

var updateExamples = flag.Bool("update", false, "copy examples into the documents again")

// example names a function of a test file, in a comment of a document before
// the block that shows it.
var example = regexp.MustCompile("(?s)<!-- example: (\\S+) (\\w+) -->\n```go\n(.*?)```\n")

// TestExamples_InDocs holds what documents show against examples that run.
func TestExamples_InDocs(t *testing.T) {
	for _, doc := range []string{"docs/INDEX.md", "docs/OBSERVERS.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		now := example.ReplaceAllStringFunc(string(text), func(block string) string {
			m := example.FindStringSubmatch(block)
			found++
			return "<!-- example: " + m[1] + " " + m[2] + " -->\n```go\n" + bodyOf(t, m[1], m[2]) + "```\n"
		})
		if found == 0 {
			t.Errorf("%s shows no example", doc)
		}
		if now == string(text) {
			continue
		}
		if !*updateExamples {
			t.Errorf("%s shows an example that is not the one that runs: make golden", doc)
		} else if err := os.WriteFile(doc, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// bodyOf returns the body of a function, without its indentation and without
// what makes the directory it works in.
func bodyOf(t *testing.T, path, name string) string {
	t.Helper()
	fset := token.NewFileSet()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(fset, path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != name {
			continue
		}
		body := string(src[fset.Position(fn.Body.Lbrace).Offset+2 : fset.Position(fn.Body.Rbrace).Offset])
		if _, after, ok := strings.Cut(body, "os.RemoveAll(dir)\n"); ok {
			body = after
		}
		return strings.TrimPrefix(strings.ReplaceAll("\n"+body, "\n\t", "\n"), "\n")
	}
	t.Fatalf("%s has no %s", path, name)
	return ""
}
