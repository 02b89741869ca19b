package main

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"
)

// text is what the demo appends: lines of real files, one behind the other.
type text struct {
	name string
	all  []byte // each line with its line feed
	ends []int  // offset behind each line
}

// textLines is how many lines the demo can use at most.
const textLines = 300_000

//go:embed *.go
var sample embed.FS

// loadText takes the source of the Go standard library where Go has it, else
// this program's own, several times over.
func loadText() *text {
	t := &text{name: "the Go standard library's own source"}
	if root := goRoot(); root != "" {
		t.addTree(os.DirFS(path.Join(root, "src")))
	}
	if t.lines() >= textLines {
		return t
	}
	t = &text{name: "this program's own source, repeated"}
	for before := -1; int(t.lines()) > before && t.lines() < textLines; {
		before = int(t.lines())
		t.addTree(sample)
	}
	return t
}

// goRoot says where Go is, or "".
func goRoot() string {
	if root := os.Getenv("GOROOT"); root != "" {
		return root
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

var errEnough = errors.New("enough")

// addTree adds the Go files of a tree in the order of their names. What cannot
// be read is left out.
func (t *text) addTree(tree fs.FS) {
	_ = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil //nolint:nilerr // left out
		}
		if b, err := fs.ReadFile(tree, name); err == nil {
			t.add(b)
		}
		if t.lines() >= textLines {
			return errEnough
		}
		return nil
	})
}

func (t *text) add(b []byte) {
	for line := range bytes.Lines(b) {
		t.all = append(t.all, line...)
		if line[len(line)-1] != '\n' {
			t.all = append(t.all, '\n')
		}
		t.ends = append(t.ends, len(t.all))
	}
}

func (t *text) lines() uint64 { return uint64(len(t.ends)) }

// at returns where line n begins, counted from 0.
func (t *text) at(n uint64) int {
	if n == 0 {
		return 0
	}
	return t.ends[min(n, t.lines())-1]
}

// between returns the lines from one up to another, with their line feeds.
func (t *text) between(from, to uint64) []byte { return t.all[t.at(from):t.at(to)] }

// from returns all lines from one on.
func (t *text) from(n uint64) []byte { return t.all[t.at(n):] }

// line returns a line without its line feed.
func (t *text) line(n uint64) []byte { return bytes.TrimSuffix(t.between(n, n+1), []byte("\n")) }

// unique returns the first line at or after n that is in the file just once,
// and its offset there.
func (t *text) unique(file []byte, n uint64) (line uint64, at int) {
	for ; n < t.lines(); n++ {
		want := t.line(n)
		if len(want) >= 20 && bytes.Count(file, want) == 1 && bytes.Count(t.all, want) == 1 {
			return n, bytes.Index(file, want)
		}
	}
	return 0, -1
}
