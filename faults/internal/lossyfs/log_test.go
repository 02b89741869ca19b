package lossyfs

import (
	"os"
	"path/filepath"
	"testing"
)

// held reads an image as a map of names and contents.
func held(t *testing.T, l *log, cut int, seed uint64, mode Mode) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	if err := l.image(cut, seed, mode, dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		m[e.Name()] = string(b)
	}
	return m
}

// TestImage follows a file from its temporary name to its own: its data is
// saved by syncing it, its name only by syncing the folder.
func TestImage(t *testing.T) {
	var l log
	l.note(op{kind: opName, file: 1, add: "tmp"})
	l.note(op{kind: opWrite, file: 1, data: []byte("hello")})
	l.note(op{kind: opSync, file: 1})
	l.note(op{kind: opName, file: 1, del: "tmp", add: "log"})
	renamed := len(l.ops)
	l.note(op{kind: opSyncNames})
	named := len(l.ops)
	l.note(op{kind: opWrite, file: 1, data: []byte("J")})
	l.note(op{kind: opFailedSync, file: 1})
	l.note(op{kind: opSync, file: 1})
	for _, tc := range []struct {
		cut  int
		mode Mode
		want map[string]string
	}{
		{0, Keep, map[string]string{}},
		{renamed, Drop, map[string]string{}},
		{renamed, Keep, map[string]string{"log": "hello"}},
		{named, Drop, map[string]string{"log": "hello"}},
		{named + 1, Drop, map[string]string{"log": "hello"}},
		{named + 1, Keep, map[string]string{"log": "Jello"}},
		{named + 3, Keep, map[string]string{"log": "hello"}}, // a failed sync, then one that says nil
	} {
		got := held(t, &l, tc.cut, 1, tc.mode)
		if len(got) != len(tc.want) || got["log"] != tc.want["log"] {
			t.Errorf("cut %d, %s: %q, want %q", tc.cut, tc.mode, got, tc.want)
		}
	}
	var seen [2]bool
	for seed := range uint64(40) {
		got := held(t, &l, renamed, seed, Strict)
		_, old := got["tmp"]
		_, own := got["log"]
		seen[0], seen[1] = seen[0] || old, seen[1] || own && !old
	}
	if seen != [2]bool{true, true} {
		t.Errorf("the old name was seen: %v, the new one: %v", seen[0], seen[1])
	}
}
