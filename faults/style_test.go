package faults_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStyle holds this module to the sizes of the product's code.
func TestStyle(t *testing.T) {
	const maxFileLines, maxFuncLines = 600, 70
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".go" {
			return err
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if lines := strings.Count(string(src), "\n"); lines > maxFileLines {
			t.Errorf("%s: %d lines, at most %d", name, lines, maxFileLines)
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, src, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if lines := files.Position(n.End()).Line - files.Position(n.Pos()).Line; lines > maxFuncLines {
					t.Errorf("%s: %s has %d lines, at most %d", files.Position(n.Pos()), n.Name.Name, lines, maxFuncLines)
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && n.Sel.Name == "Sleep" {
					t.Errorf("%s: time.Sleep", files.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
