package tidemark_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Sizes that keep a file readable in one sitting.
const (
	maxFileLines = 600
	maxFuncLines = 70
)

// forbidden lists calls that a package must not make, and who may.
var forbidden = []struct {
	call    *regexp.Regexp
	why     string
	tests   bool     // holds in tests, too
	allowed []string // packages that may
}{
	{regexp.MustCompile(`^time\.Sleep$`), "wait on a signal, or use testing/synctest", true, nil},
	{regexp.MustCompile(`^fmt\.Print(f|ln)?$`), "take an io.Writer", false, nil},
	{
		regexp.MustCompile(`^os\.(OpenFile|Open|Create|Rename|Remove|RemoveAll|ReadFile|WriteFile|Mkdir|MkdirAll|MkdirTemp)$`),
		"go through internal/disk", false,
		[]string{"cmd/tidemark", "internal/disk", "internal/securedir", "fuzz/mutants"},
	},
}

// TestStyle holds the code to what a linter would not know of this project.
func TestStyle(t *testing.T) {
	for _, name := range goFiles(t) {
		fset := token.NewFileSet()
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		isTest := strings.HasSuffix(name, "_test.go")
		if lines := strings.Count(string(src), "\n"); !isTest && lines > maxFileLines {
			t.Errorf("%s: %d lines, at most %d", name, lines, maxFileLines)
		}
		pkg := filepath.ToSlash(filepath.Dir(name))
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if lines := fset.Position(n.End()).Line - fset.Position(n.Pos()).Line; !isTest && lines > maxFuncLines {
					t.Errorf("%s: %s has %d lines, at most %d", fset.Position(n.Pos()), n.Name.Name, lines, maxFuncLines)
				}
			case *ast.SelectorExpr:
				checkCall(t, fset, n, pkg, isTest)
			}
			return true
		})
	}
}

func checkCall(t *testing.T, fset *token.FileSet, sel *ast.SelectorExpr, pkg string, isTest bool) {
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return
	}
	call := x.Name + "." + sel.Sel.Name
	for _, f := range forbidden {
		if f.call.MatchString(call) && (f.tests || !isTest) && !slices.Contains(f.allowed, pkg) {
			t.Errorf("%s: %s: %s", fset.Position(sel.Pos()), call, f.why)
		}
	}
}

// goFiles lists the Go files of the main module.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || d.Name() == "testdata" || d.Name() == ".git" {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(name, ".go") {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestNoMachinePaths keeps the project free of the paths of any one machine.
func TestNoMachinePaths(t *testing.T) {
	machine := regexp.MustCompile(`/(work|farm|root|home/[a-z]+)/|/[.]library`)
	for _, name := range goFiles(t) {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := machine.FindIndex(src); at != nil && name != "style_test.go" {
			t.Errorf("%s: holds a path of a machine: %q", name, src[at[0]:min(at[1]+20, len(src))])
		}
	}
}
