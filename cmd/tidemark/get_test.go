package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/pagelog"
)

// keyedFile makes a log with n keys and returns its path.
func keyedFile(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.log")
	log, err := pagelog.Create(path, pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b pagelog.Batch
	b.CompleteOnly = true
	for i := range n {
		b.Append(fmt.Appendf(nil, "order %d", i))
		b.Key([]byte("orders"), fmt.Appendf(nil, "order-%d", i))
		if i%100 == 99 || i == n-1 {
			if _, err := log.Commit(context.Background(), &b); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGet covers get and reindex: what they print and how they end.
func TestGet(t *testing.T) {
	t.Parallel()
	path := keyedFile(t, 12_000)
	for _, tc := range []struct {
		args        []string
		code        int
		out, stderr string
	}{
		{[]string{"get", path, "orders", "order-7"}, 0, "order 7\n", ""},
		{[]string{"get", path, "orders", "order-11999", "--json"}, 0, `{"revision":120,"record":198,"payload":"order 11999","keys":[{"namespace":"orders","key":"order-11999"}]}` + "\n", ""},
		{[]string{"get", path, "orders", "order-12000"}, 5, "", "no such key"},
		{[]string{"get", path, "", "order-7"}, 5, "", "no such key"},
		{[]string{"get", path, "orders", ""}, 2, "", "at least one byte"},
		{[]string{"get", path, "orders", strings.Repeat("k", 2000)}, 2, "", "none may have over 1024"},
		{[]string{"get", path, strings.Repeat("n", 256), "k"}, 2, "", "none may have over 255"},
		{[]string{"get", path, "orders"}, 2, "", "KEY is missing"},
		{[]string{"get", path}, 2, "", "NAMESPACE and KEY are missing"},
		{[]string{"get"}, 2, "", "LOG is missing"},
		{[]string{"get", path, "a", "b", "c"}, 2, "", "one too many"},
		{[]string{"reindex"}, 2, "", "LOG is missing"},
		{[]string{"reindex", path + "x"}, 2, "", "no such file"},
		{[]string{"reindex", path}, 0, "indexed " + path + ": 12000 keys\n", ""},
		{[]string{"get", path, "orders", "order-7"}, 0, "order 7\n", ""},
	} {
		var out, errs strings.Builder
		cmd := exec.Command(binary, tc.args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != tc.code || out.String() != tc.out || !strings.Contains(errs.String(), tc.stderr) {
			t.Errorf("%.60q: code %d, %q, %q", tc.args, got, out.String(), errs.String())
		}
		if tc.code != 0 && !strings.Contains(errs.String(), "next: ") {
			t.Errorf("%.60q does not say what to do: %q", tc.args, errs.String())
		}
	}
}

// TestGet_Damaged_Q25: a damaged index is said to be so, and reindex mends it.
func TestGet_Damaged_Q25(t *testing.T) {
	t.Parallel()
	path := keyedFile(t, 12_000)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	piece := []byte{2, 0, 0xFF, 0xFF, 0, 0, 0, 0} // kind and flags of a record with a piece of a run
	for at := 0; ; {
		n := bytes.Index(b[at:], piece)
		if n < 0 {
			break
		}
		at += n + 300 // in its first block
		b[at] ^= 1
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for i := 0; i < 12_000; i += 1500 {
		out, err := exec.Command(binary, "get", path, "orders", fmt.Sprintf("order-%d", i)).CombinedOutput()
		if err == nil && string(out) != fmt.Sprintf("order %d\n", i) {
			t.Fatalf("%q", out)
		}
		if err != nil && strings.Contains(string(out), "keyed index is damaged") && strings.Contains(string(out), "reindex "+path) {
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatal("nothing met the damage")
	}
	if out, err := exec.Command(binary, "reindex", path).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	if out, err := exec.Command(binary, "get", path, "orders", "order-4500").CombinedOutput(); err != nil || string(out) != "order 4500\n" {
		t.Fatalf("%s %v", out, err)
	}
}

// TestAppend_Keys: what append puts under a key, get finds, the newest; cat and
// tail print payloads alone, and with --json the keys, which append takes again.
func TestAppend_Keys(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "placed\npaid\n", "append", path, "--namespace", "orders", "--key", "17", "--ack").want(t, 0).prints(t, "1\n2\n")
	tidemark(t, "bare\n", "append", path, "--key", "17").want(t, 0)
	in := `{"payload": "shipped", "keys": [{"namespace": "orders", "key": "17"}, {"namespace": "parcels", "key": "\u00e4"}]}
{"payload": "without"}
{"payload_base64": "AP8=", "keys": [{"namespace_base64": "/w==", "key_base64": "AP8="}]}
`
	tidemark(t, in, "append", path, "--json", "--group", "3", "--ack").want(t, 0).prints(t, "4\n")
	get := func(path, out string, args ...string) {
		t.Helper()
		tidemark(t, "", append([]string{"get", path}, args...)...).want(t, 0).prints(t, out)
	}
	get(path, "shipped\n", "orders", "17")
	get(path, "shipped\n", "parcels", "ä")
	get(path, "bare\n", "", "17")
	tidemark(t, "", "get", path, "orders", "18").want(t, 5, "no such key")
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "placed\npaid\nbare\nshipped\nwithout\n\x00\xff\n")
	tidemark(t, "", "tail", path, "--after", "3", "--limit", "2").want(t, 0).prints(t, "shipped\nwithout\n")
	all := tidemark(t, "", "cat", path, "--json").want(t, 0)
	all.prints(t, `{"revision":1,"record":0,"payload":"placed","keys":[{"namespace":"orders","key":"17"}]}
{"revision":2,"record":0,"payload":"paid","keys":[{"namespace":"orders","key":"17"}]}
{"revision":3,"record":0,"payload":"bare","keys":[{"namespace":"","key":"17"}]}
{"revision":4,"record":0,"payload":"shipped","keys":[{"namespace":"orders","key":"17"},{"namespace":"parcels","key":"ä"}]}
{"revision":4,"record":3,"payload":"without"}
{"revision":4,"record":4,"payload_base64":"AP8=","keys":[{"namespace_base64":"/w==","key_base64":"AP8="}]}
`)
	// The cursor stands in the last line of each commit, whatever keys follow it.
	lines := strings.Split(tidemark(t, "", "cat", path, "--json", "--cursor").want(t, 0).out, "\n")
	for i, line := range lines[:6] {
		if at := strings.Contains(line, `"cursor":`); at != (i < 3 || i == 5) {
			t.Errorf("cursor: %v in line %d: %s", at, i+1, line)
		}
	}
	var last struct{ Cursor string }
	if err := json.Unmarshal([]byte(lines[5]), &last); err != nil {
		t.Fatal(err)
	}
	tidemark(t, "", "cat", path, "--after", last.Cursor).want(t, 0).prints(t, "")
	again := newPath(t)
	tidemark(t, all.out, "append", "--json", again).want(t, 0)
	get(again, "shipped\n", "orders", "17")
	tidemark(t, "", "reindex", again).want(t, 0).prints(t, "indexed "+again+": 6 keys\n")
	get(again, "shipped\n", "parcels", "ä")
	get(again, "bare\n", "", "17")
	// With both, a record has the keys of its line and the one of the flags.
	tidemark(t, `{"payload": "lost", "keys": [{"key": "both"}]}`, "append", again, "--json", "--namespace", "orders", "--key", "17").want(t, 0)
	get(again, "lost\n", "orders", "17")
	get(again, "lost\n", "", "both")
}

// TestAppend_KeysBadInput: a key that cannot be is refused before anything is
// made.
func TestAppend_KeysBadInput(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{"--namespace", "orders"}, "goes with --key"},
		{[]string{"--key", ""}, "at least one byte"},
		{[]string{"--key"}, "needs an argument"},
		{[]string{"--key", strings.Repeat("k", 1025)}, "none may have over 1024"},
		{[]string{"--key", "k", "--namespace", strings.Repeat("n", 256)}, "none may have over 255"},
	} {
		tidemark(t, "x\n", append([]string{"append", path}, tc.args...)...).want(t, 2, tc.says)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a log was made")
	}
	tidemark(t, "x\n", "append", path, "--key", strings.Repeat("k", 1024), "--namespace", strings.Repeat("n", 255)).want(t, 0)
	tidemark(t, "", "get", path, strings.Repeat("n", 255), strings.Repeat("k", 1024)).want(t, 0).prints(t, "x\n")
}
