package securedir

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// R25: every system has one Host, and all but the three that are known get the
// one that fails closed.
func TestR25_OtherSystemsFailClosed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	known := map[string]bool{"linux": true, "android": true, "darwin": true, "ios": true, "windows": true}
	for _, system := range []string{
		"linux", "android", "darwin", "ios", "windows", "freebsd", "openbsd", "netbsd", "dragonfly", "solaris", "illumos", "aix", "plan9", "js", "wasip1",
	} {
		world := build.Default
		world.GOOS, world.GOARCH, world.CgoEnabled = system, "amd64", false
		var hosts []string
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			match, err := world.MatchFile(".", f)
			must(t, err)
			if match && declares(t, f, "Host") {
				hosts = append(hosts, f)
			}
		}
		switch {
		case len(hosts) != 1:
			t.Errorf("%s: %v", system, hosts)
		case !known[system] && hosts[0] != "host_other.go", known[system] && hosts[0] == "host_other.go":
			t.Errorf("%s has %s", system, hosts[0])
		}
	}
}

// declares reports whether a file has a function, and that the one of
// host_other.go does nothing but refuse.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	must(t, err)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Name.Name != name {
			continue
		}
		if file == "host_other.go" {
			ret, ok := fn.Body.List[0].(*ast.ReturnStmt)
			if !ok || len(fn.Body.List) != 1 || ret.Results[1].(*ast.Ident).Name != "ErrUnsupported" {
				t.Errorf("%s does more than refuse", file)
			}
		}
		return true
	}
	return false
}
