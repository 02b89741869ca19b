package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFork_L54: a fork has the same history up to a commit and a life of its
// own; the source is as it was.
func TestFork_L54(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b", "c")
	made := filepath.Join(t.TempDir(), "new")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := tidemark(t, "", "fork", path, made, "--at", "2", "--plan").want(t, 0)
	if _, err := os.Stat(made); err == nil || !strings.Contains(r.out, "2 commits from revision 1 on") {
		t.Errorf("a plan: %q, %v", r.out, err)
	}
	var report struct {
		Source, LogID, Digest string
		Revision, Head        uint64
		Copied                int64
	}
	r = tidemark(t, "", "fork", path, made, "--at", "2", "--json").want(t, 0)
	if err := json.Unmarshal([]byte(strings.ReplaceAll(r.out, "log_id", "LogID")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Revision != 2 || report.Head != 3 || report.Copied == 0 || report.LogID == report.Source {
		t.Errorf("%+v", report)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the source changed: %v", err)
	}
	tidemark(t, "d\n", "append", made).want(t, 0)
	if err := os.Remove(path); err != nil { // Q134
		t.Fatal(err)
	}
	r = tidemark(t, "", "cat", made).want(t, 0)
	if !strings.HasPrefix(r.out, "a\nb\n") || !strings.HasSuffix(r.out, "d\n") {
		t.Errorf("%q", r.out)
	}
	tidemark(t, "", "verify", made).want(t, 0)
	if s := statOf(t, made); len(s["ancestors"].([]any)) != 1 || s["head"] != 4.0 {
		t.Errorf("%v", s)
	}
	if r := tidemark(t, "", "inspect", made).want(t, 0); !strings.Contains(r.out, "forked from revision 2") {
		t.Errorf("inspect does not say where it comes from:\n%s", r.out)
	}
}

// TestFork_Refusals_Q124: what cannot be forked, the exit code, and what to do.
func TestFork_Refusals_Q124(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b")
	made := filepath.Join(t.TempDir(), "new")
	tidemark(t, "", "fork", path, made, "--at", "3").want(t, 5, "cannot fork here", "the last durable one is 2")
	tidemark(t, "", "fork", path, made, "--at", "0").want(t, 2, "before the first commit")
	tidemark(t, "", "fork", path, path).want(t, 2, "taken")
	tidemark(t, "", "fork", path).want(t, 2, "NEW is missing")
	tidemark(t, "", "fork", made, made+"2").want(t, 2)
	if names, err := os.ReadDir(filepath.Dir(made)); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
