package authority

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"
	"testing"
)

// T14, trap 12, R60: no == or != on anything that is or holds a MAC, a key, a
// scope or a digest, and no bytes.Equal on MACs: equal is the only comparison.
func TestT14_Trap12_NoPlainComparisonOfMACs(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	entries, err := os.ReadDir(".")
	must(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			f, err := parser.ParseFile(fset, e.Name(), nil, 0)
			must(t, err)
			files = append(files, f)
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	_, err = conf.Check("authority", fset, files, info)
	must(t, err)
	compared := 0
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					compared++
					if holdsSum(info.Types[n.X].Type) {
						t.Errorf("%s: plain comparison", fset.Position(n.Pos()))
					}
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "Equal" && strings.Contains(strings.ToLower(strings.ReplaceAll(render(n.Args), "macOffset", "")), "mac") &&
					render([]ast.Expr{fun.X}) == "bytes" {
					t.Errorf("%s: bytes.Equal on a MAC", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if compared < 50 {
		t.Errorf("only %d comparisons seen", compared)
	}
}

func render(args []ast.Expr) string {
	var names []string
	for _, a := range args {
		ast.Inspect(a, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names = append(names, id.Name)
			}
			return true
		})
	}
	return strings.Join(names, " ")
}

// holdsSum reports whether comparing a type would compare 32 bytes somewhere.
func holdsSum(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Array:
		return u.Len() == 32
	case *types.Struct:
		for f := range u.Fields() {
			if holdsSum(f.Type()) {
				return true
			}
		}
	}
	return false
}
