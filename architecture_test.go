package tidemark_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitecture_NamesExist: the files and functions that docs/ARCHITECTURE.md
// sends a newcomer to are there.
func TestArchitecture_NamesExist(t *testing.T) {
	text, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for _, m := range regexp.MustCompile("`\\(\\*?(\\w+)\\)\\.(\\w+)`(?: and `(\\w+)`)? in `([\\w/]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		source, err := os.ReadFile(m[4])
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range m[2:4] {
			if name == "" {
				continue
			}
			functions++
			if !regexp.MustCompile(`(?m)^func \(\w+ \*?` + m[1] + `\) ` + name + `\(`).Match(source) {
				t.Errorf("%s has no method %s of %s", m[4], name, m[1])
			}
		}
	}
	if functions < 5 {
		t.Errorf("%d functions are named", functions)
	}
	for _, m := range regexp.MustCompile("`([\\w/]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		name := m[1]
		if !strings.Contains(name, "/") && name != "deps_test.go" {
			name = filepath.Join("pagelog", name)
		}
		if _, err := os.Stat(name); err != nil {
			t.Errorf("docs/ARCHITECTURE.md names %s: %v", m[1], err)
		}
	}
}
