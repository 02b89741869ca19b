package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestAppend_Lines: a record ends at a line feed, a carriage return is kept,
// an empty line is a record of 0 bytes, a last line needs no line feed.
func TestAppend_Lines_L54(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in, acks, out string
	}{
		{"nothing", "", "", ""},
		{"one line", "one\n", "1\n", "one\n"},
		{"no line feed at the end", "one\ntwo", "1\n2\n", "one\ntwo\n"},
		{"empty lines", "\n\n", "1\n2\n", "\n\n"},
		{"empty line at the end", "one\n\n", "1\n2\n", "one\n\n"},
		{"carriage returns", "one\r\n\r\ntwo\r", "1\n2\n3\n", "one\r\n\r\ntwo\r\n"},
		{"any bytes", "\x00\xff\xfe\n\xc3\n", "1\n2\n", "\x00\xff\xfe\n\xc3\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			tidemark(t, tc.in, "append", path, "--ack").want(t, 0).prints(t, tc.acks)
			tidemark(t, "", "cat", path).want(t, 0).prints(t, tc.out)
		})
	}
}

// TestAppend_Groups: N lines are one commit, and a short last one is
// committed.
func TestAppend_Groups(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "a\nb\nc\nd\ne\nf\ng", "append", "--group", "3", path, "--ack").want(t, 0).prints(t, "1\n2\n3\n")
	tidemark(t, "", "cat", path, "--json", "--after", "1").want(t, 0).prints(t, `{"revision":2,"record":0,"payload":"d"}
{"revision":2,"record":1,"payload":"e"}
{"revision":2,"record":2,"payload":"f"}
{"revision":3,"record":0,"payload":"g"}
`)
}

// TestAppend_Complete: complete-only commits are durable when append ends.
func TestAppend_Complete_L18(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "a\nb\n", "append", path, "--sync=complete", "--ack").want(t, 0).prints(t, "1\n2\n")
	if s := statOf(t, path); s["head"] != 2.0 || s["durable"] != 2.0 || s["durable_end"] != s["head_end"] {
		t.Errorf("not durable at the end: %v", s)
	}
}

// TestAppend_AcksAtOnce: an acknowledgement is readable while the next line is
// not written yet.
func TestAppend_AcksAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, "append", newPath(t), "--ack")
	for i := range 5 {
		p.say("line\n")
		p.hear(fmt.Sprint(i + 1))
	}
	p.end().want(t, 0)
}

// TestAppend_LongLine_D33: a line of many MiB is a record like any other, and
// one over the limit is rejected without losing what was committed.
func TestAppend_LongLine_D33(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	long := strings.Repeat("0123456789abcdef", 16<<20/16)
	tidemark(t, "first\n"+long+"\nlast\n", "append", path, "--ack").want(t, 0).prints(t, "1\n2\n3\n")
	if got := tidemark(t, "", "cat", path).want(t, 0).out; got != "first\n"+long+"\nlast\n" {
		t.Errorf("a line of %d bytes does not come back", len(long))
	}
	in := "kept\n" + strings.Repeat(long, 4) + "\nnever\n"
	tidemark(t, in, "append", path, "--ack").want(t, 4, "line 2", "16777216 bytes", "revision 4").prints(t, "4\n")
	tidemark(t, long+"x", "append", path, "--ack").want(t, 4, "line 1").prints(t, "")
	tidemark(t, "", "cat", path, "--after", "3").want(t, 0).prints(t, "kept\n")
}

// TestAppend_EndlessLine_D33: a line without end is refused after the limit,
// not after the memory.
func TestAppend_EndlessLine_D33(t *testing.T) {
	t.Parallel()
	path := newLog(t, "kept")
	p := start(t, "append", path)
	chunk := make([]byte, 1<<20)
	written := 0
	for range 1024 {
		n, err := p.in.Write(chunk)
		written += n
		if err != nil {
			break
		}
	}
	if written > 20<<20 {
		t.Errorf("took %d bytes of a line over the limit of 16 MiB", written)
	}
	p.end().want(t, 4, "line 1", "longer than 16777216 bytes")
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "kept\n")
}

// TestAppend_JSON: text, escapes and bytes come in and go out unchanged.
func TestAppend_JSON(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	in := `{"payload": "plain"}
{"payload_base64": "AP/+"}
 { "payload" : "two\nlines \u00e4 \ud83d\ude00 \\ud800 \ufffd <&>" }
{"revision":7,"record":3,"payload":""}
{"payload_base64":""}`
	tidemark(t, in, "append", "--json", path, "--ack").want(t, 0).prints(t, "1\n2\n3\n4\n5\n")
	out := tidemark(t, "", "cat", path, "--json").want(t, 0)
	out.prints(t, `{"revision":1,"record":0,"payload":"plain"}
{"revision":2,"record":0,"payload_base64":"AP/+"}
{"revision":3,"record":0,"payload":"two\nlines ä 😀 \\ud800 � <&>"}
{"revision":4,"record":0,"payload":""}
{"revision":5,"record":0,"payload":""}
`)
	again := newPath(t)
	tidemark(t, out.out, "append", "--json", again).want(t, 0)
	tidemark(t, "", "cat", again, "--json").want(t, 0).prints(t, out.out)
}

// TestAppend_BadJSON: a line that is not what it should be ends append with
// its number, and what was committed before it stays.
func TestAppend_BadJSON(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, line, says string }{
		{"empty", "", "not a JSON object"},
		{"no object", `"text"`, "not a JSON object"},
		{"cut", `{"payload": "te`, "not valid JSON"},
		{"cut behind the value", `{"payload": "text"`, "not valid JSON"},
		{"no value", `{"payload"}`, "not valid JSON"},
		{"trash behind it", `{"payload": "text"} x`, "behind the JSON object"},
		{"two objects", `{"payload": "a"}{"payload": "b"}`, "behind the JSON object"},
		{"no payload", `{}`, "exactly one of the keys"},
		{"unknown key", `{"paylod": "text"}`, "did you mean payload?"},
		{"key in another case", `{"Payload": "text"}`, "unknown"},
		{"key twice", `{"payload": "a", "payload": "b"}`, "twice"},
		{"both keys", `{"payload": "a", "payload_base64": ""}`, "exactly one of the keys"},
		{"number", `{"payload": 5}`, "not a string"},
		{"null", `{"payload": null}`, "not a string"},
		{"object", `{"payload": {"a": 1}}`, "not a string"},
		{"keys that are no list", `{"payload": "a", "keys": {"key": "k"}}`, "not a list"},
		{"a key that is no object", `{"payload": "a", "keys": ["k"]}`, "not an object"},
		{"a key without its name", `{"payload": "a", "keys": [{"namespace": "n"}]}`, "one of key and key_base64"},
		{"a key with two names", `{"payload": "a", "keys": [{"key": "k", "key_base64": ""}]}`, "one of key and key_base64"},
		{"a key in two namespaces", `{"payload": "a", "keys": [{"key": "k", "namespace": "", "namespace_base64": ""}]}`, "at most one of namespace"},
		{"a key with a field too many", `{"payload": "a", "keys": [{"key": "k", "nmespace": ""}]}`, "did you mean namespace?"},
		{"a key of a number", `{"payload": "a", "keys": [{"key": 7}]}`, "not a string"},
		{"an empty key", `{"payload": "a", "keys": [{"key": ""}]}`, "at least one byte"},
		{"a long key", `{"payload": "a", "keys": [{"key": "` + strings.Repeat("k", 1025) + `"}]}`, "none may have over 1024"},
		{"a long namespace", `{"payload": "a", "keys": [{"key": "k", "namespace": "` + strings.Repeat("n", 256) + `"}]}`, "none may have over 255"},
		{"keys cut", `{"payload": "a", "keys": [{"key": "k"}`, "not valid JSON"},
		{"keys twice", `{"payload": "a", "keys": [], "keys": []}`, "twice"},
		{"nested elsewhere", `{"payload": "a", "record": [1]}`, "no plain value"},
		{"bad base64", `{"payload_base64": "A"}`, "not base64"},
		{"base64 without padding", `{"payload_base64": "AP8"}`, "not base64"},
		{"invalid UTF-8", "{\"payload\": \"\xff\"}", "not valid UTF-8"},
		{"lone surrogate", `{"payload": "\ud800"}`, "half of a UTF-16 pair"},
		{"surrogates in the wrong order", `{"payload": "\ude00\ud83d"}`, "half of a UTF-16 pair"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			in := `{"payload": "kept"}` + "\n" + tc.line + "\n" + `{"payload": "never"}` + "\n"
			tidemark(t, in, "append", path, "--json", "--ack").want(t, 2, "line 2", tc.says).prints(t, "1\n")
			tidemark(t, "", "cat", path).want(t, 0).prints(t, "kept\n")
		})
	}
}

// TestAppend_Rejected: what is over a limit of the log changes nothing.
func TestAppend_Rejected_L9_L58(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		create []string
		append []string
		in     string
		says   string
		kept   string
	}{
		{"record", []string{"--max-record", "10"}, nil, "0123456789\n0123456789x\n", "line 2", "0123456789\n"},
		{"record in JSON", []string{"--max-record", "3"}, []string{"--json"}, `{"payload":"abc"}` + "\n" + `{"payload":"abcd"}`, "line 2", "abc\n"},
		{"commit", []string{"--max-group", "1K"}, []string{"--group", "50"}, strings.Repeat("0123456789\n", 50), "lines 1 to", ""},
		{"file", []string{"--max-size", "64K"}, nil, strings.Repeat(strings.Repeat("x", 1000)+"\n", 50) + "y\n", "no space", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			tidemark(t, "", append([]string{"create", path}, tc.create...)...).want(t, 0)
			acks := tidemark(t, tc.in, append([]string{"append", path, "--ack"}, tc.append...)...).want(t, 4, "rejected", tc.says).out
			cat := tidemark(t, "", "cat", path).want(t, 0)
			if tc.kept != "" {
				cat.prints(t, tc.kept)
			}
			if a, c := strings.Count(acks, "\n"), strings.Count(cat.out, "\n"); a != c {
				t.Errorf("%d commits acknowledged, %d there", a, c)
			}
			if tidemark(t, "", "stat", path).want(t, 0); tc.name == "record" {
				tidemark(t, "goes on\n", "append", path).want(t, 0)
			}
		})
	}
}

// TestAppend_NobodyReadsAcks: append stops, the log is sound.
func TestAppend_NobodyReadsAcks(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.Command(binary, "append", path, "--ack")
	cmd.Stdin, cmd.Stdout = strings.NewReader(joined(numbered(50))), in
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); err != nil {
		t.Errorf("a closed pipe is an error: %v", err)
	}
	if got := tidemark(t, "", "cat", path).want(t, 0).out; !strings.HasPrefix(joined(numbered(50)), got) || got == "" {
		t.Errorf("the log holds %q", got)
	}
}

// TestAppend_Interrupted_L54: Ctrl-C lets the commit under way finish and
// leaves a sound log with exactly what was acknowledged.
func TestAppend_Interrupted_L54(t *testing.T) {
	t.Parallel()
	t.Run("between lines", func(t *testing.T) {
		t.Parallel()
		path := newPath(t)
		p := start(t, "append", path, "--ack", "--group", "2")
		p.say("a\nb\nc\nhalf a l")
		p.hear("1")
		p.interrupt()
		if _, err := io.ReadAll(p.out); err != nil {
			t.Fatal(err)
		}
		p.end().want(t, 130, "revision is 1")
		tidemark(t, "", "cat", path).want(t, 0).prints(t, "a\nb\n")
		tidemark(t, "d\n", "append", path, "--ack").want(t, 0).prints(t, "2\n")
	})
	t.Run("in full flow", func(t *testing.T) {
		t.Parallel()
		path := newPath(t)
		p := start(t, "append", path, "--ack")
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := 1; ; i++ {
				if _, err := fmt.Fprintf(p.in, "line %d\n", i); err != nil {
					return
				}
			}
		})
		for i := range 20 {
			p.hear(fmt.Sprint(i + 1))
		}
		p.interrupt()
		rest, err := io.ReadAll(p.out)
		if err != nil {
			t.Fatal(err)
		}
		p.end().want(t, 130)
		writer.Wait()
		acked := 20 + strings.Count(string(rest), "\n")
		var want strings.Builder
		for i := range acked {
			fmt.Fprintf(&want, "line %d\n", i+1)
		}
		tidemark(t, "", "cat", path).want(t, 0).prints(t, want.String())
	})
}

// TestAppend_Locked_L19: a second writer is told so; readers are not disturbed.
func TestAppend_Locked_L19(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	p := start(t, "append", path, "--ack")
	p.say("one\ntwo\n")
	p.hear("1")
	p.hear("2")
	tidemark(t, "x\n", "append", path, "--ack").want(t, 3, "held by another writer").prints(t, "")
	tidemark(t, "", "create", path).want(t, 2, "exists")
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "one\ntwo\n")
	tidemark(t, "", "tail", path, "--limit", "1").want(t, 0).prints(t, "one\n")
	if s := statOf(t, path); s["head"] != 2.0 {
		t.Errorf("stat beside a writer: %v", s)
	}
	p.end().want(t, 0)
	tidemark(t, "three\n", "append", path, "--ack").want(t, 0).prints(t, "3\n")
}

// TestAppend_Replaced_L20: a file that was replaced, removed or shortened under
// the writer is noticed before the acknowledgement.
func TestAppend_Replaced_L20(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, path string) error{
		"replaced": func(t *testing.T, path string) error { return os.Rename(newLog(t, "other"), path) },
		"removed":  func(t *testing.T, path string) error { return os.Remove(path) },
		"emptied":  func(t *testing.T, path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			p := start(t, "append", path, "--ack")
			p.say("one\n")
			p.hear("1")
			if err := change(t, path); err != nil {
				t.Fatal(err)
			}
			p.say("two\n")
			p.end().want(t, 4, "removed, replaced or shortened", "revision 1 is the last one acknowledged").prints(t, "")
		})
	}
}

// TestAppend_CreatedByMany: whoever comes first makes the log; nobody makes a
// second one.
func TestAppend_CreatedByMany(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	acked := 0
	for range 8 {
		all.Go(func() {
			r := tidemark(t, "line\n", "append", path, "--ack")
			if r.code != 0 && r.code != 3 {
				t.Errorf("exit code %d: %s", r.code, r.err)
			}
			mu.Lock()
			defer mu.Unlock()
			acked += strings.Count(r.out, "\n")
		})
	}
	all.Wait()
	tidemark(t, "", "cat", path).want(t, 0).prints(t, strings.Repeat("line\n", acked))
	if names, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
}

// TestAppend_FullDisk_L15: a full disk rejects the commit and keeps the rest.
func TestAppend_FullDisk_L15(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		skip(t, "only root can mount a small disk")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", dir).CombinedOutput(); err != nil {
		skip(t, fmt.Sprintf("mount: %v %s", err, out))
	}
	defer func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	}()
	path := filepath.Join(dir, "run.log")
	record := strings.Repeat("x", 10_000)
	r := tidemark(t, strings.Repeat(record+"\n", 100), "append", path, "--ack").want(t, 4, "rejected", "no space")
	acked := strings.Count(r.out, "\n")
	if acked < 10 {
		t.Errorf("only %d commits of 10 kB fit 256 KiB", acked)
	}
	if got := tidemark(t, "", "cat", path).want(t, 0).out; got != strings.Repeat(record+"\n", acked) {
		t.Errorf("%d commits acknowledged, %d there", acked, strings.Count(got, "\n"))
	}
	tidemark(t, "", "create", filepath.Join(dir, "other.log"), "--page-size", "1M").want(t, 4, "no space")
}
