package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/pagelog"
)

// TestVerify_L51: what is sound, what is corrupt, and what is said of each.
func TestVerify_L51(t *testing.T) {
	t.Parallel()
	records := numbered(400)
	whole := newLog(t, records...)
	end := int64(statOf(t, whole)["head_end"].(float64))
	flip := func(offsets ...int64) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			for _, off := range offsets {
				damageAt(t, path, off, func(b []byte) { b[0] ^= 16 })
			}
		}
	}
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, path string)
		code   int
		shows  string
	}{
		{"whole", flip(), 0, "sound: head 400, 400 commits with 400 records hold"},
		{"record", func(t *testing.T, path string) {
			damageRecord(t, path, records[249], func(b []byte) { b[7] ^= 1 })
		}, 1, "revision 250"},
		{"first group", flip(16384 + 32 + 20), 1, "revision 1"},
		{"one slot", flip(4096 + 50), 0, "slot"},
		{"both slots", flip(4096+50, 8192+50), 1, "slot"},
		{"one identity", flip(50), 0, "identity"},
		{"page header", flip(2*16384 + 3), 1, "page header"},
		{"torn end", func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("half a group"), end+8); err != nil {
				t.Fatal(err)
			}
		}, 0, "torn"},
		{"cut off", func(t *testing.T, path string) {
			if err := os.Truncate(path, end-20); err != nil {
				t.Fatal(err)
			}
		}, 1, "corrupt"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			copyFile(t, whole, path)
			tc.change(t, path)
			before := describe(t, path)
			text := tidemark(t, "", "verify", path).want(t, tc.code).out
			if !strings.Contains(text, tc.shows) {
				t.Errorf("verify does not show %q:\n%s", tc.shows, text)
			}
			var report pagelog.VerifyReport
			out := tidemark(t, "", "verify", path, "--json", "--workers", "3").want(t, tc.code).out
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatal(err)
			}
			if report.Corrupt != (tc.code == 1) || report.Findings == nil {
				t.Errorf("exit code %d, and the report says %s", tc.code, out)
			}
			for _, f := range report.Findings {
				if f.Structure == "" || f.What == "" || f.Class == "" || !strings.Contains(text, placeOf(&f)) {
					t.Errorf("finding %+v is not whole, or not in the text:\n%s", f, text)
				}
			}
			if after := describe(t, path); after != before {
				t.Errorf("verify changed the file: was %s, is %s", before, after)
			}
		})
	}
}

// TestVerify_JSONKeys holds the keys that others read.
func TestVerify_JSONKeys_L51(t *testing.T) {
	t.Parallel()
	path := newLog(t, numbered(100)...)
	damageRecord(t, path, numbered(100)[49], func(b []byte) { b[0] ^= 1 })
	var report struct {
		Corrupt  bool
		Findings []map[string]any
	}
	if err := json.Unmarshal([]byte(tidemark(t, "", "verify", path, "--json").want(t, 1).out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) != 1 || !report.Corrupt {
		t.Fatalf("one flipped bit gives %+v", report)
	}
	for _, key := range []string{"offset", "page", "revision", "structure", "what"} {
		if _, ok := report.Findings[0][key]; !ok {
			t.Errorf("no key %q in %v", key, report.Findings[0])
		}
	}
	if report.Findings[0]["revision"] != 50.0 {
		t.Errorf("revision 50 was damaged, found is %v", report.Findings[0])
	}
}

// TestVerify_BesideWriter: a live log is sound.
func TestVerify_BesideWriter(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	p := start(t, "append", path, "--ack")
	for i := range 50 {
		p.say("line\n")
		p.hear(fmt.Sprint(i + 1))
	}
	tidemark(t, "", "verify", path).want(t, 0)
	p.end().want(t, 0)
}

// TestBar: a bar is drawn on a terminal only.
func TestBar(t *testing.T) {
	var out strings.Builder
	b := newBar(&out)
	b.began = b.began.Add(-1e9)
	b.show(1, 2)
	b.clear()
	if out.Len() > 0 {
		t.Errorf("drawn where nobody looks: %q", out.String())
	}
	b.w = &out
	b.show(1<<20, 2<<20)
	b.show(2<<20, 2<<20) // too soon
	b.clear()
	if got := out.String(); !strings.Contains(got, "50 %  1.0 MiB of 2.0 MiB") || strings.Count(got, "[") != 3 {
		t.Errorf("draws %q", got)
	}
}

// TestDemo: the demo runs, and says that every promise holds.
func TestDemo(t *testing.T) {
	dir := t.TempDir()
	out := tidemark(t, "", "demo", "--dir", dir).want(t, 0).out
	if n := strings.Count(out, "   ok  "); n != 10 {
		t.Errorf("%d promises are shown:\n%s", n, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestDemo_FailsLoudly: a log that is not what was appended is noticed, line by
// line, commit by commit.
func TestDemo_FailsLoudly(t *testing.T) {
	t.Parallel()
	all := &text{}
	all.add([]byte(joined(numbered(3 * demoGroup))))
	good := numbered(2 * demoGroup)
	other, short := slices.Clone(good), good[:2*demoGroup-1]
	other[demoGroup+3] += "!"
	for name, records := range map[string][]string{"good": good, "another line": other, "a part of a commit": short} {
		path := newPath(t)
		tidemark(t, joined(records), "append", path, "--group", fmt.Sprint(demoGroup)).want(t, 0)
		d := &demo{w: &strings.Builder{}, text: all, path: path}
		head, _, err := d.reopen()
		if name == "good" {
			if head != 2 || err != nil {
				t.Errorf("%s: head %d, %v", name, head, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: not noticed", name)
			continue
		}
		if code, said := explain(newDemo(), err); code != 1 || !strings.Contains(said, "a promise was broken") {
			t.Errorf("%s: exit code %d: %s", name, code, said)
		}
	}
}

// TestDemo_Sample: the demo has a text where Go has none.
func TestDemo_Sample(t *testing.T) {
	t.Setenv("GOROOT", t.TempDir())
	sample := loadText()
	if sample.lines() < textLines || sample.name != "this program's own source, repeated" {
		t.Errorf("%d lines of %s", sample.lines(), sample.name)
	}
	if got := string(sample.between(0, 2)); strings.Count(got, "\n") != 2 || got[:len(got)-1] != string(sample.line(0))+"\n"+string(sample.line(1)) {
		t.Errorf("the first two lines are %q", got)
	}
}

// TestVerify_CountsOne: one is one.
func TestVerify_CountsOne(t *testing.T) {
	t.Parallel()
	const want = "sound: head 1, 1 commit with 1 record hold, "
	if out := tidemark(t, "", "verify", newLog(t, "a")).want(t, 0).out; !strings.HasPrefix(out, want) {
		t.Errorf("%q, want %q", out, want)
	}
}
