package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSalvage_L52: what holds is in the new log, what is lost is said, and the
// old log is not touched.
func TestSalvage_L52(t *testing.T) {
	t.Parallel()
	records := numbered(400)
	bad := newLog(t, records...)
	damageRecord(t, bad, records[249], func(b []byte) { b[3] ^= 0x10 })
	before := string(read(t, bad))

	prefix := newPath(t)
	r := tidemark(t, "", "salvage", bad, prefix, "--prefix").want(t, 0)
	for _, part := range []string{"corrupt", "revision 250", "kept     revisions 1 to 249", "head 249, 249 commits kept, 0 commits with 0 records saved"} {
		if !strings.Contains(r.out, part) {
			t.Errorf("does not say %q:\n%s", part, r.out)
		}
	}
	tidemark(t, "", "cat", prefix).want(t, 0).prints(t, joined(records[:249]))

	all := newPath(t)
	r = tidemark(t, "", "salvage", bad, all).want(t, 0)
	for _, part := range []string{
		"kept     revisions 1 to 249", "lost     revision 250", "saved    revisions 251 to 400 as opaque records in revisions 250 to 399 of the new log",
		"249 commits kept, 150 commits with 150 records saved",
	} {
		if !strings.Contains(r.out, part) {
			t.Errorf("does not say %q:\n%s", part, r.out)
		}
	}
	saved := tidemark(t, "", "cat", all, "--after", "249").want(t, 0).out
	for _, record := range records[250:] {
		if !strings.Contains(saved, record) {
			t.Fatalf("%q was not saved", record)
		}
	}
	for _, made := range []string{prefix, all} {
		tidemark(t, "", "verify", made).want(t, 0)
		if statOf(t, made)["log_id"] == statOf(t, bad)["log_id"] {
			t.Error("the new log has the identity of the old one")
		}
		tidemark(t, "on\n", "append", made).want(t, 0)
	}
	if string(read(t, bad)) != before {
		t.Error("the damaged log was touched")
	}
}

// TestSalvage_L52_JSON: the keys that others read.
func TestSalvage_L52_JSON(t *testing.T) {
	t.Parallel()
	records := numbered(40)
	bad := newLog(t, records...)
	damageRecord(t, bad, records[9], func(b []byte) { b[3] ^= 0x10 })
	var report struct {
		Head, Kept, Saved, Records int
		LogID                      string `json:"log_id"`
		Source                     struct {
			Corrupt  bool
			Findings []struct{ Revision int }
		}
		Map []struct {
			OldFirst int `json:"old_first"`
			NewLast  int `json:"new_last"`
			Opaque   bool
		}
	}
	out := tidemark(t, "", "salvage", bad, newPath(t), "--json").want(t, 0).out
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Head != 39 || report.Kept != 9 || report.Saved != 30 || report.Records != 30 || len(report.LogID) != 32 ||
		!report.Source.Corrupt || report.Source.Findings[0].Revision != 10 || len(report.Map) != 2 || report.Map[1].OldFirst != 11 || !report.Map[1].Opaque {
		t.Errorf("%s", out)
	}
}

// TestNewLog_L29: a verb that makes a log never writes over what is there,
// leaves nothing behind when it fails, and says what is wrong.
func TestNewLog_L29(t *testing.T) {
	t.Parallel()
	records := numbered(40)
	path := newLog(t, records...)
	bad := newLog(t, records...)
	damageRecord(t, bad, records[9], func(b []byte) { b[3] ^= 0x10 })
	noLog := newPath(t)
	if err := os.WriteFile(noLog, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"copy", "salvage"} {
		dir := t.TempDir()
		there := filepath.Join(dir, "there")
		if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		tidemark(t, "", verb, path, there).want(t, 2, "name is taken", "choose another name for NEW").prints(t, "")
		tidemark(t, "", verb, path, path).want(t, 2, "name is taken").prints(t, "")
		tidemark(t, "", verb, path, dir).want(t, 2, "name is taken").prints(t, "")
		tidemark(t, "", verb, path, filepath.Join(dir, "no", "such")).want(t, 2).prints(t, "")
		tidemark(t, "", verb, filepath.Join(dir, "none"), filepath.Join(dir, "new")).want(t, 2, "check the path").prints(t, "")
		tidemark(t, "", verb, noLog, filepath.Join(dir, "new")).want(t, 2, "not a Tidemark log").prints(t, "")
		tidemark(t, "", verb, path).want(t, 2, "NEW is missing")
		tidemark(t, "", verb).want(t, 2, "LOG and NEW are missing")
		tidemark(t, "", verb, path, "b", "c").want(t, 2, "one too many")
		if verb == "copy" {
			tidemark(t, "", verb, bad, filepath.Join(dir, "new")).want(t, 1, "corrupt", "revision 10", "salvage").prints(t, "")
		}
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != 1 || string(read(t, there)) != "mine" {
			t.Errorf("%s left behind %v, %v", verb, names, err)
		}
	}
	if s, err := os.Stat(path); err != nil || s.Size() == 0 {
		t.Error("the source is gone", err)
	}
	if _, err := os.Stat("b"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file was made of the wrong operand")
	}
}

// TestCopy_L56: a copy has the same history and identity, also while the log
// is written, and holds what was acknowledged before.
func TestCopy_L56(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := start(t, "append", path, "--ack")
	for i := range 30 {
		w.say(lineOf(i+1, 0) + "\n")
		for range 1 {
			if line, err := w.out.ReadString('\n'); err != nil || line == "" {
				t.Fatal(err)
			}
		}
	}
	made := newPath(t)
	out := tidemark(t, "", "copy", path, made, "--json").want(t, 0).out
	var report struct {
		Head   int
		Digest string
		LogID  string `json:"log_id"`
		End    int64  `json:"durable_end"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Head < 29 || report.LogID != statOf(t, path)["log_id"] || report.LogID != statOf(t, made)["log_id"] {
		t.Errorf("%s", out)
	}
	w.say("last\n")
	w.hear("31")
	w.end().want(t, 0)
	tidemark(t, "", "verify", made).want(t, 0)
	want := tidemark(t, "", "cat", path, "--limit", statText(report.Head)).want(t, 0).out
	tidemark(t, "", "cat", made).want(t, 0).prints(t, want)
	if string(read(t, path)[16384:report.End]) != string(read(t, made)[16384:report.End]) {
		t.Error("the copy has other bytes")
	}
	// A cursor of the original is one of the copy, up to where it goes.
	tidemark(t, "", "cat", made, "--after", statOf(t, made)["cursor"].(string)).want(t, 0).prints(t, "")
	tidemark(t, "", "cat", path, "--after", statOf(t, made)["cursor"].(string)).want(t, 0)
	tidemark(t, "", "cat", made, "--after", statOf(t, path)["cursor"].(string)).want(t, 5, "beyond the head")
	if out := tidemark(t, "", "copy", path, newPath(t)).want(t, 0).out; !strings.Contains(out, "head 31") {
		t.Error(out)
	}
}
