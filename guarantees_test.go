package tidemark_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGuarantees_NamedTestsExist fails when a document names a test that is
// gone: a promise without its proof is not a promise.
func TestGuarantees_NamedTestsExist(t *testing.T) {
	defined := map[string]bool{}
	decl := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	for _, name := range goFiles(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range decl.FindAllStringSubmatch(string(src), -1) {
			defined[m[1]] = true
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)\\w+)`")
	for _, doc := range []string{"docs/GUARANTEES.md", "docs/TESTING.md", "README.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Error(err)
			continue
		}
		found := named.FindAllStringSubmatch(string(text), -1)
		if doc == "docs/GUARANTEES.md" && len(found) < 20 {
			t.Errorf("%s names %d tests; a promise without a test is not made", doc, len(found))
		}
		for _, m := range found {
			if !defined[m[1]] {
				t.Errorf("%s names %s, which does not exist", doc, m[1])
			}
		}
	}
}
