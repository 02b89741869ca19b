package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCat_Positions: where cat begins and ends.
func TestCat_Positions(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "a\nb\nc\nd\ne\n", "append", path, "--group", "2").want(t, 0) // revisions 1 to 3
	for _, tc := range []struct {
		args []string
		out  string
	}{
		{nil, "a\nb\nc\nd\ne\n"},
		{[]string{"--after", "0"}, "a\nb\nc\nd\ne\n"},
		{[]string{"--after=1"}, "c\nd\ne\n"},
		{[]string{"--after", "3"}, ""},
		{[]string{"--limit", "3"}, "a\nb\nc\n"},
		{[]string{"--limit", "0"}, ""},
		{[]string{"--limit", "99"}, "a\nb\nc\nd\ne\n"},
		{[]string{"--after", "1", "--limit", "1"}, "c\n"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			t.Parallel()
			tidemark(t, "", append([]string{"cat", path}, tc.args...)...).want(t, 0).prints(t, tc.out)
			tidemark(t, "", append(append([]string{"cat"}, tc.args...), path)...).want(t, 0).prints(t, tc.out)
			tidemark(t, "", append([]string{"tail", path}, tc.args...)...).want(t, 0).prints(t, tc.out)
		})
	}
}

// TestCat_Cursors_L48: a cursor goes on where its commit ended; one that is not
// of this history is refused with exit code 5 and its own reason.
func TestCat_Cursors_L48(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "run.log")
	tidemark(t, "a\nb\nc\n", "append", path).want(t, 0)
	old := filepath.Join(dir, "old.log")
	copyFile(t, path, old)
	tidemark(t, "d\n", "append", path).want(t, 0)
	token := func(path, after string) string {
		r := tidemark(t, "", "cat", path, "--after", after, "--limit", "1", "--json", "--cursor").want(t, 0)
		var line struct{ Cursor string }
		if err := json.Unmarshal([]byte(r.out), &line); err != nil {
			t.Fatal(err)
		}
		return line.Cursor
	}
	second, fourth := token(path, "1"), token(path, "3")
	tidemark(t, "", "cat", path, "--after", second).want(t, 0).prints(t, "c\nd\n")
	tidemark(t, "", "tail", path, "--after", second).want(t, 0).prints(t, "c\nd\n")
	tidemark(t, "", "cat", path, "--after", fourth).want(t, 0).prints(t, "")
	if got := statOf(t, path)["cursor"]; got != fourth {
		t.Errorf("stat shows the cursor %v, cat %v", got, fourth)
	}

	refused := func(path, after string, code int, says string) {
		t.Helper()
		for _, verb := range []string{"cat", "tail"} {
			tidemark(t, "", verb, path, "--after", after).want(t, code, says).prints(t, "")
		}
	}
	refused(old, fourth, 5, "beyond the head")
	refused(old, "4", 5, "no such revision")
	tidemark(t, "another d\n", "append", old).want(t, 0)
	refused(old, fourth, 5, "another history")
	refused(newLog(t, "a", "b", "c", "d"), second, 5, "another log")
	refused(path, fourth[:len(fourth)-1]+"~", 5, "malformed")
	refused(path, strings.Replace(fourth, "tm1_", "tm2_", 1), 5, "malformed")
	refused(path, "banana", 2, "neither a revision nor a cursor")
	refused(path, "-1", 2, "neither a revision nor a cursor")
	refused(path, "", 2, "empty")
}

// TestCat_CursorOfPart_L50: a cursor is never ahead of what was printed.
func TestCat_CursorOfPart_L50(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "a\nb\nc\nd\n", "append", path, "--group", "2").want(t, 0)
	r := tidemark(t, "", "cat", path, "--limit", "3", "--cursor").want(t, 0, "cursor: tm1_")
	after := strings.TrimSpace(strings.TrimPrefix(r.err, "cursor: "))
	tidemark(t, "", "cat", path, "--after", after).want(t, 0).prints(t, "c\nd\n")
	r = tidemark(t, "", "cat", path, "--limit", "0", "--cursor").want(t, 0, "cursor: tm1_")
	after = strings.TrimSpace(strings.TrimPrefix(r.err, "cursor: "))
	tidemark(t, "", "cat", path, "--after", after).want(t, 0).prints(t, "a\nb\nc\nd\n")
}

// TestCat_ClosedPipe_L54: a pipe closed early is no error.
func TestCat_ClosedPipe_L54(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, joined(numbered(20_000)), "append", path, "--group", "1000").want(t, 0)
	for _, args := range [][]string{{"cat", path}, {"cat", path, "--json"}, {"tail", path}} {
		p := start(t, args...)
		pipe, err := p.out.ReadString('\n')
		if err != nil || pipe == "" {
			t.Fatal(err)
		}
		p.closeOut()
		p.end().want(t, 0)
	}
	for _, args := range [][]string{{"stat", path}, {"stat", path, "--json"}, {"version"}, {"--help"}, {"cat", "--help"}} {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, args...)
		cmd.Stdout = in
		if err := cmd.Run(); err != nil {
			t.Errorf("%v: a closed pipe is an error: %v", args, err)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCat_Corrupt_C49: at damage the sound prefix is printed, then where and
// why, and the exit code says that this is not all.
func TestCat_Corrupt_C49(t *testing.T) {
	t.Parallel()
	records := numbered(400)
	path := newLog(t, records...)
	for name, damage := range map[string]func([]byte){
		"flipped bit":  func(b []byte) { b[0] ^= 1 },
		"run of zeros": func(b []byte) { clear(b) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := newPath(t)
			copyFile(t, path, bad)
			damageRecord(t, bad, records[249], damage)
			prefix := joined(records[:249])
			for _, verb := range []string{"cat", "tail"} {
				tidemark(t, "", verb, bad).want(t, 1, "corrupt", "offset", "page", "revision 250").prints(t, prefix)
			}
			tidemark(t, "", "cat", bad, "--limit", "249").want(t, 0).prints(t, prefix)
			tidemark(t, "", "cat", bad, "--after", "200").want(t, 1, "revision 250").prints(t, joined(records[200:249]))
			before := read(t, bad)
			tidemark(t, "more\n", "append", bad, "--ack").want(t, 1, "corrupt", "revision 250", "verify").prints(t, "")
			if string(before) != string(read(t, bad)) {
				t.Error("a writer that refuses the log changed it")
			}
		})
	}
}

// TestCat_CutOff_C49: a file that lost its end is not a shorter log.
func TestCat_CutOff_C49(t *testing.T) {
	t.Parallel()
	records := numbered(400)
	path := newLog(t, records...)
	end := int64(statOf(t, path)["head_end"].(float64))
	for _, size := range []int64{end - 1, end - 100, end / 2, 16<<10 + 1, 16 << 10} {
		bad := newPath(t)
		copyFile(t, path, bad)
		if err := os.Truncate(bad, size); err != nil {
			t.Fatal(err)
		}
		got := tidemark(t, "", "cat", bad).want(t, 1, "corrupt", "offset").out
		if !strings.HasPrefix(joined(records), got) || got == joined(records) {
			t.Errorf("cut off at %d: prints no proper prefix", size)
		}
		s := tidemark(t, "", "stat", bad).want(t, 1, "corrupt")
		if !strings.Contains(s.out, "damaged") {
			t.Errorf("cut off at %d: stat does not show it:\n%s", size, s.out)
		}
		tidemark(t, "x\n", "append", bad).want(t, 1, "corrupt")
	}
}

// TestTail_Follow: what another process appends is printed as it comes, and
// the limit ends it.
func TestTail_Follow(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--durable"}} {
		path := newLog(t, "a", "b")
		p := start(t, append([]string{"tail", "--follow", path, "--after", "1", "--limit", "4"}, flags...)...)
		p.hear("b")
		w := start(t, "append", path, "--ack")
		for _, line := range []string{"c", "d", "e"} {
			w.say(line + "\n")
			p.hear(line)
		}
		w.end().want(t, 0)
		p.end().want(t, 0)
	}
}

// TestTail_Interrupted: Ctrl-C ends following, with the cursor to go on from.
func TestTail_Interrupted(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b")
	p := start(t, "tail", "--follow", path, "--cursor")
	p.hear("a")
	p.hear("b")
	p.interrupt()
	r := p.end().want(t, 130, "cursor: tm1_")
	if !strings.Contains(r.err, statOf(t, path)["cursor"].(string)) {
		t.Errorf("the cursor is not that of the last commit: %s", r.err)
	}
}

// TestStat_Keys holds the keys that others read.
func TestStat_Keys(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "", "create", path, "--page-size", "4K").want(t, 0)
	tidemark(t, "a\nb\n", "append", path).want(t, 0)
	s := statOf(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"head": 2.0, "durable": 2.0, "page_size": 4096.0, "file_size": float64(info.Size()),
		"epoch": 2.0, "format_version": 1.0, "oldest": 1.0, "damage": nil, "base": nil, "generation": 1.0,
	} {
		if got, ok := s[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if id, _ := s["log_id"].(string); len(id) != 32 {
		t.Errorf("log_id is %v", s["log_id"])
	}
	if end, _ := s["durable_end"].(float64); end <= 16384 || end > float64(info.Size()) {
		t.Errorf("durable_end is %v of %d bytes", end, info.Size())
	}
	if _, ok := s["checkpoints"].([]any); !ok {
		t.Errorf("checkpoints is %v", s["checkpoints"])
	}
	text := tidemark(t, "", "stat", path).want(t, 0).out
	for _, key := range []string{"log_id", "head", "durable", "durable_end", "page_size", "file_size", "epoch", "checkpoints", "format_version"} {
		if !strings.Contains(text, "\n"+key+" ") && !strings.HasPrefix(text, key+" ") {
			t.Errorf("stat does not show %s:\n%s", key, text)
		}
	}
}

// TestStat_HeaderDamage_L27: one bad slot or copy of the identity is shown and
// harmless; two bad slots are damage; two bad copies are no log.
func TestStat_HeaderDamage_L27(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b")
	for _, tc := range []struct {
		name    string
		offsets []int64
		code    int
		shows   string
	}{
		{"one slot", []int64{4096 + 100}, 0, "slot 0"},
		{"the other slot", []int64{8192 + 100}, 0, "slot 1"},
		{"both slots", []int64{4096 + 100, 8192 + 100}, 1, "slot 1"},
		{"one identity", []int64{100}, 0, "copy 0"},
		{"the other identity", []int64{12288 + 100}, 0, "copy 1"},
		{"both identities", []int64{100, 12288 + 100}, 2, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bad := newPath(t)
			copyFile(t, path, bad)
			for _, off := range tc.offsets {
				damageAt(t, bad, off, func(b []byte) { b[0] ^= 4 })
			}
			r := tidemark(t, "", "stat", bad).want(t, tc.code)
			if !strings.Contains(r.out, tc.shows) {
				t.Errorf("stat does not show %q:\n%s", tc.shows, r.out)
			}
			if tc.code == 2 {
				tidemark(t, "", "cat", bad).want(t, 2, "not a Tidemark log")
				return
			}
			tidemark(t, "", "cat", bad).want(t, 0).prints(t, "a\nb\n")
		})
	}
}

// closeOut closes the reading end of the program's standard output.
func (p *process) closeOut() {
	p.t.Helper()
	if err := p.pipe.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.out = bufio.NewReader(strings.NewReader(""))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, read(t, from), 0o600); err != nil {
		t.Fatal(err)
	}
}

// damageRecord changes the bytes of the record that holds a text.
func damageRecord(t *testing.T, path, text string, change func([]byte)) {
	t.Helper()
	b := read(t, path)
	at := strings.Index(string(b), text)
	if at < 0 {
		t.Fatalf("no record %q", text)
	}
	change(b[at : at+len(text)])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// damageAt changes the byte at an offset.
func damageAt(t *testing.T, path string, off int64, change func([]byte)) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	change(b[:])
	if _, err := f.WriteAt(b[:], off); err != nil {
		t.Fatal(err)
	}
}
