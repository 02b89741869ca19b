package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/pagelog"
)

func statText(n int) string { return strconv.Itoa(n) }

// lastState returns what a host would go on from.
func lastState(t *testing.T, path string) (uint64, string) {
	t.Helper()
	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	revision, data, err := r.LastCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	return revision, string(data)
}

// TestCheckpoint_L54: a state is kept with its revision, from a file and from
// standard input; a checkpoint without one leaves the last one; history does
// not change.
func TestCheckpoint_L54(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b", "c")
	cursor := statOf(t, path)["cursor"]
	state := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(state, []byte("state at 2\x00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tidemark(t, "", "checkpoint", path, "--blob", state, "--at", "2").want(t, 0).prints(t, "checkpoint at revision 2 with 12 bytes of state, head 3\n")
	if rev, data := lastState(t, path); rev != 2 || data != "state at 2\x00\n" {
		t.Errorf("%d %q", rev, data)
	}
	tidemark(t, "", "checkpoint", path).want(t, 0).prints(t, "checkpoint at revision 3 with no state of its own, head 3\n")
	if rev, data := lastState(t, path); rev != 2 || data != "state at 2\x00\n" {
		t.Errorf("a checkpoint without a state lost the last one: %d %q", rev, data)
	}
	tidemark(t, "", "checkpoint", path, "--blob", "-", "--json").want(t, 0).prints(t, `{"revision":3,"blob_bytes":0,"head":3}`+"\n")
	if rev, data := lastState(t, path); rev != 3 || data != "" {
		t.Errorf("an empty state is none: %d %q", rev, data)
	}
	tidemark(t, "", "checkpoint", path, "--json").want(t, 0).prints(t, `{"revision":3,"blob_bytes":null,"head":3}`+"\n")
	if s := statOf(t, path); s["cursor"] != cursor || len(s["checkpoints"].([]any)) != 2 {
		t.Errorf("%v", s)
	}
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "a\nb\nc\n")
	tidemark(t, "", "verify", path).want(t, 0)
}

// TestCheckpoint_L37_Refused: what cannot be a checkpoint is refused, and
// nothing changes.
func TestCheckpoint_L37_Refused(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b")
	history := func() string { return strings.Join(strings.Fields(tidemark(t, "", "stat", path).out), " ") }
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, bytes.Repeat([]byte{7}, checkpoint.MaxBlob+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{path, "--blob", large}, 4, "none may have over"},
		{[]string{path, "--blob", "-", "--at", "3"}, 5, "no such revision"},
		{[]string{path, "--at", "1"}, 2, "add --blob"},
		{[]string{path, "--blob", ""}, 2, "empty"},
		{[]string{path, "--blob", filepath.Join(path, "none")}, 2, "--blob: open "},
		{[]string{path, "--at", "-1"}, 2, "too small"},
		{[]string{path + "x"}, 2, "check the path"},
		{nil, 2, "LOG is missing"},
	} {
		tidemark(t, "state", append([]string{"checkpoint"}, tc.args...)...).want(t, tc.code, tc.says).prints(t, "")
	}
	if s := statOf(t, path); len(s["checkpoints"].([]any)) != 0 || s["head"] != 2.0 {
		t.Errorf("something was written: %s", history())
	}
	w := start(t, "append", path, "--ack")
	w.say("c\n")
	w.hear("3")
	tidemark(t, "", "checkpoint", path).want(t, 3, "another writer")
	w.end().want(t, 0)
}
