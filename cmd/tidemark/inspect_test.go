package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestInspect_L53_Tree: the tree shows every part of the file in order, with
// offsets that lead to it.
func TestInspect_L53_Tree(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	records := numbered(120)
	tidemark(t, "", "create", path, "--page-size", "4K").want(t, 0)
	tidemark(t, joined(records), "append", path, "--group", "3").want(t, 0)
	tidemark(t, "state", "checkpoint", path, "--blob", "-", "--at", "7").want(t, 0)
	out := tidemark(t, "", "inspect", path, "--limit", "1000").want(t, 0).out
	for _, part := range []string{
		"header area", "identity, copy 0", "slot 0", "slot 1", "(newest)", "identity, copy 1", "page 4", "page 5", "commit 1:", "commit 40:",
		"3 records", "record 2:", "checkpoint at revision 40", "state of the host", "durable floor", "free: zeros written ahead", "end of the file",
		"map: one character is a page of 4096 bytes", "H  header area", "c  commits", "k  ", ".  zeros written ahead",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("the tree does not show %q:\n%s", part, out)
		}
	}
	file := read(t, path)
	lines, last := 0, -1
	for _, m := range regexp.MustCompile(`(?m)^ *(\d+) +(\d+)      record (\d): (\d+) bytes$`).FindAllStringSubmatch(out, -1) {
		off, _ := strconv.Atoi(m[1])
		size, _ := strconv.Atoi(m[4])
		want := records[lines]
		if off <= last || size != len(want) || off/4096 == (off+24+size)/4096 && string(file[off+24:off+24+size]) != want {
			t.Fatalf("record %d is said to lie at %d with %d bytes", lines, off, size)
		}
		lines, last = lines+1, off
	}
	if lines != len(records) {
		t.Errorf("%d records of %d are shown:\n%s", lines, len(records), out)
	}
	if strings.Contains(out, "!!") {
		t.Errorf("a sound log is marked:\n%s", out)
	}
	only := tidemark(t, "", "inspect", path, "--pages").want(t, 0).out
	if !strings.HasPrefix(only, "map: ") || !strings.HasSuffix(out, only) {
		t.Errorf("--pages is not the map alone:\n%s", only)
	}
}

// TestInspect_L53_Bounded: of a large log a bounded part is shown, both ends
// of it, and how much is left out.
func TestInspect_L53_Bounded(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "", "create", path, "--page-size", "4K").want(t, 0)
	tidemark(t, joined(numbered(8000)), "append", path, "--sync", "complete").want(t, 0)
	for limit, parts := range map[string][]string{
		"0": {"8000 groups"},
		"1": {"commit 1:"},
		"6": {"commit 1:", "commit 3:", "groups are not shown", "commit 8000:"},
	} {
		out := tidemark(t, "", "inspect", path, "--limit", limit).want(t, 0).out
		for _, part := range parts {
			if limit == "0" {
				part = "groups are not shown"
			}
			if !strings.Contains(out, part) {
				t.Errorf("--limit %s does not show %q", limit, part)
			}
		}
		if n := strings.Count(out, "\n"); n > 60 {
			t.Errorf("--limit %s prints %d lines:\n%s", limit, n, out)
		}
	}
	if out := tidemark(t, "", "inspect", path).want(t, 0).out; strings.Count(out, "\n") > 200 {
		t.Errorf("prints %d lines of its own accord", strings.Count(out, "\n"))
	}
}

// TestInspect_L53_JSON: the keys that others read, and a map that accounts for
// every byte.
func TestInspect_L53_JSON(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b", "c")
	var p struct {
		FileSize   int64  `json:"file_size"`
		Floor      int64  `json:"durable_floor"`
		LogID      string `json:"log_id"`
		LeftOut    int    `json:"groups_left_out"`
		HeaderArea int64  `json:"header_area"`
		Base       any    `json:"base"`
		Slots      []struct {
			Offset  int64
			Newest  bool
			Durable struct{ Offset, Revision int64 }
		}
		Groups []struct {
			Offset, End, Revision int64
			Kind, State           string
			Records               []struct {
				Offset int64
				Stored int `json:"stored_bytes"`
			}
		}
		Map   []map[string]int64
		Check struct {
			Corrupt  bool
			Findings []any
		}
	}
	out := tidemark(t, "", "inspect", path, "--json").want(t, 0).out
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := statOf(t, path)
	if p.FileSize != info.Size() || p.LogID != s["log_id"] || p.Floor != int64(s["durable_end"].(float64)) || p.HeaderArea != 16384 ||
		p.LeftOut != 0 || p.Base != nil || p.Check.Corrupt || p.Check.Findings == nil || len(p.Slots) != 2 {
		t.Errorf("%+v", p)
	}
	for i, want := range []string{"a", "b", "c"} {
		g := p.Groups[i]
		if g.Kind != "commit" || g.State != "durable" || g.Revision != int64(i+1) || g.Records[0].Stored != 1 || string(read(t, path)[g.Records[0].Offset+24]) != want {
			t.Errorf("%+v", g)
		}
	}
	total := int64(0)
	for _, c := range p.Map {
		for key, n := range c {
			if key != "page" && key != "pages" && key != "findings" {
				total += n
			}
		}
	}
	if total != info.Size() {
		t.Errorf("the map accounts for %d bytes of %d", total, info.Size())
	}
	if strings.Contains(out, "salt") {
		t.Error("the salt is shown")
	}
}

// TestInspect_L53_Damage: damage is marked in the tree and on the map, and the
// exit code is 1; what a crash left is not damage.
func TestInspect_L53_Damage(t *testing.T) {
	t.Parallel()
	records := numbered(400)
	path := newLog(t, records...)
	for _, tc := range []struct {
		name   string
		change func(bad string)
		code   int
		shows  []string
	}{
		{"record", func(bad string) { damageRecord(t, bad, records[249], func(b []byte) { b[0] ^= 1 }) }, 1, []string{"!! ", "revision 250", "!  damage", "commit 400:"}},
		{"slot", func(bad string) { damageAt(t, bad, 4096+100, func(b []byte) { b[0] ^= 1 }) }, 0, []string{"!! slot 0: sum does not match"}},
		{"both slots", func(bad string) {
			damageAt(t, bad, 4096+100, func(b []byte) { b[0] ^= 1 })
			damageAt(t, bad, 8192+100, func(b []byte) { b[0] ^= 1 })
		}, 1, []string{"!! slot 0", "!! slot 1", "commit 400:"}},
		{"identity", func(bad string) { damageAt(t, bad, 100, func(b []byte) { b[0] ^= 1 }) }, 0, []string{"!! identity, copy 0", "identity, copy 1: log "}},
		{"torn", func(bad string) {
			damageAt(t, bad, int64(statOf(t, bad)["head_end"].(float64))+20, func(b []byte) { b[0] = 7 })
		}, 0, []string{"torn", "t  a torn write"}},
		{"cut", func(bad string) {
			if err := os.Truncate(bad, int64(statOf(t, bad)["head_end"].(float64))-100); err != nil {
				t.Error(err)
			}
		}, 1, []string{"!! ", "durable floor", "commit 399:"}},
		{"identities", func(bad string) {
			damageAt(t, bad, 100, func(b []byte) { b[0] ^= 1 })
			damageAt(t, bad, 12288+100, func(b []byte) { b[0] ^= 1 })
		}, 2, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bad := newPath(t)
			copyFile(t, path, bad)
			tc.change(bad)
			before := string(read(t, bad))
			out := tidemark(t, "", "inspect", bad).want(t, tc.code).out
			for _, part := range tc.shows {
				if !strings.Contains(out, part) {
					t.Errorf("does not show %q:\n%s", part, out)
				}
			}
			if tc.code == 2 {
				tidemark(t, "", "inspect", bad).want(t, 2, "not a Tidemark log").prints(t, "")
			} else {
				tidemark(t, "", "inspect", bad, "--pages").want(t, tc.code)
				tidemark(t, "", "inspect", bad, "--json").want(t, tc.code)
			}
			if string(read(t, bad)) != before {
				t.Error("inspect wrote to the log")
			}
		})
	}
}
