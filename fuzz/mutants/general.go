package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// generalFiles is the code whose every line decides what is kept and what is
// lost.
var generalFiles = []string{
	"frame/builder.go", "frame/geometry.go", "frame/group.go", "frame/identity.go", "frame/page.go", "frame/record.go", "frame/slot.go",
	"pagelog/anchor.go", "pagelog/bridge.go", "pagelog/commit.go", "pagelog/recover.go", "pagelog/search.go", "pagelog/slots.go", "pagelog/walk.go",
}

// general draws n general mutants of those files: conditions negated, operators
// and operands exchanged, numbers off by one, statements dropped. Those that are
// no program are passed over.
func (c *checker) general(n int, seed uint64) ([]mutant, error) {
	var list []mutant
	for _, file := range generalFiles {
		sites, err := c.sites(file)
		if err != nil {
			return nil, err
		}
		list = append(list, sites...)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	fmt.Fprintf(c.out, "%d places for general mutants in %d files, seed %d\n", len(list), len(generalFiles), seed)
	compile := programs{importer: importer.ForCompiler(token.NewFileSet(), "source", nil), root: c.root}
	kept := list[:0]
	for _, m := range list {
		if len(kept) == n {
			break
		}
		src, err := c.apply(m)
		if err != nil {
			return nil, err
		}
		if compile.ok(m.file, src) {
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// sites lists the mutants of one file.
func (c *checker) sites(file string) ([]mutant, error) {
	src, err := os.ReadFile(filepath.Join(c.root, file))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, 0)
	if err != nil {
		return nil, err
	}
	s := &siteList{file: file, src: string(src), fset: fset}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			ast.Inspect(fn.Body, s.visit)
		}
	}
	return s.list, nil
}

type siteList struct {
	file string
	src  string
	fset *token.FileSet
	list []mutant
}

// visit adds what can be wrong with one node.
func (s *siteList) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		s.add("negate", n.Cond, "!("+s.text(n.Cond)+")")
	case *ast.CaseClause:
		for _, e := range n.List {
			if isCondition(e) {
				s.add("negate", e, "!("+s.text(e)+")")
			}
		}
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.BasicLit:
		if v, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
			s.add("off by one", n, strconv.FormatInt(v+1, 10))
		}
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt:
		s.add("drop", n, "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			s.add("drop", n, "")
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true", "max": "min", "min": "max"}[n.Name]; other != "" {
			s.add("exchange", n, other)
		}
	}
	return true
}

func isCondition(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return strings.Contains("== != < <= > >= && ||", e.Op.String())
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	}
	return false
}

// exchanged is what an operator is taken for.
var exchanged = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "/",
	token.AND: "|", token.OR: "&", token.AND_NOT: "&", token.SHL: ">>", token.SHR: "<<",
}

func (s *siteList) binary(n *ast.BinaryExpr) {
	x, y := s.text(n.X), s.text(n.Y)
	if op := exchanged[n.Op]; op != "" {
		s.add("operator", n, x+" "+op+" "+y)
	}
	switch n.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.SUB, token.QUO, token.REM:
		s.add("operands", n, y+" "+n.Op.String()+" "+x)
	}
}

func (s *siteList) text(n ast.Node) string {
	return s.src[s.fset.Position(n.Pos()).Offset:s.fset.Position(n.End()).Offset]
}

func (s *siteList) add(kind string, n ast.Node, replacement string) {
	at := s.fset.Position(n.Pos())
	m := mutant{
		name: fmt.Sprintf("%s:%d:%d %s", s.file, at.Line, at.Column, kind), file: s.file,
		old: s.text(n), new: replacement, at: at.Offset, pkg: "./pagelog", tests: quick, then: thorough,
	}
	if strings.HasPrefix(s.file, "frame/") {
		m.pkg, m.then, m.tests = "./frame", "", "^Test"
		m.beyond = &mutant{pkg: "./pagelog", tests: quick, then: thorough}
	}
	s.list = append(s.list, m)
}

// The tests that a general mutant of the engine meets: first those that take
// no time, then the crash simulator and every bit of a log.
const (
	quick    = "^Test(L|Log|Batch|Submit|Commit|Close|Checkpoint|Payload|Steady|Inspect|Open|C[0-9])"
	thorough = "^Test(Crash|Verify|Index|Model|Slots|Huge|Compact|Retain|Window|Follow)"
)

// programs says whether a changed file still makes a program.
type programs struct {
	importer types.Importer
	root     string
}

func (p *programs) ok(file string, src []byte) bool {
	fset := token.NewFileSet()
	dir := filepath.Dir(file)
	names, err := filepath.Glob(filepath.Join(p.root, dir, "*.go"))
	if err != nil {
		return false
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		var text any
		if filepath.Base(name) == filepath.Base(file) {
			text = src
		}
		f, err := parser.ParseFile(fset, name, text, 0)
		if err != nil {
			return false
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: p.importer}
	_, err = conf.Check(dir, fset, files, nil)
	return err == nil
}
