package authority

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The requirement table names tests that exist, and every requirement, trap and
// scenario is in it or in the name of a test.
func TestDocs_EveryRequirementNamesItsTests(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	var all strings.Builder
	for _, dir := range []string{".", "../snapshot", "../internal/securedir"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		must(t, err)
		for _, f := range files {
			b, err := os.ReadFile(f)
			must(t, err)
			for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
				tests[m[1]] = true
				all.WriteString(m[1] + "_\n")
			}
		}
	}
	doc, err := os.ReadFile("../docs/AUTHORITY.md")
	must(t, err)
	named := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`)
	for _, name := range named.FindAllString(string(doc), -1) {
		if !tests[name] && !tests[name+"_"] {
			t.Errorf("%s is named and does not exist", name)
		}
	}
	row := regexp.MustCompile(`(?m)^\| R(\d+) \| (\S.*) \|$`)
	rows := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		if rows[m[1]] {
			t.Errorf("R%s twice", m[1])
		}
		rows[m[1]] = true
	}
	for n := 1; n <= 113; n++ {
		if !rows[fmt.Sprint(n)] {
			t.Errorf("R%d has no row", n)
		}
	}
	for n := 1; n <= 20; n++ {
		if !regexp.MustCompile(fmt.Sprintf(`Trap%02d_`, n)).MatchString(all.String()) {
			t.Errorf("trap %d has no test", n)
		}
		if n != 11 && !regexp.MustCompile(fmt.Sprintf(`[t_]T%02d_`, n)).MatchString(all.String()) {
			t.Errorf("scenario T%d has no test", n)
		}
	}
}
