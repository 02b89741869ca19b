package main

import (
	"strings"
	"testing"
)

// TestCompact: the same history in a smaller file, and forks of it go on.
func TestCompact(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "", "create", path, "--page-size", "4K").want(t, 0)
	tidemark(t, joined(numbered(400)), "append", path).want(t, 0)
	for range 5 {
		tidemark(t, strings.Repeat("state", 5000), "checkpoint", path, "--blob", "-", "--at", "350").want(t, 0)
	}
	before := statOf(t, path)
	r := tidemark(t, "", "compact", path).want(t, 0)
	if !strings.Contains(r.out, "revisions 1 to 400, file generation 2") {
		t.Errorf("%q", r.out)
	}
	after := statOf(t, path)
	if after["cursor"] != before["cursor"] || after["generation"] != 2.0 || after["head_end"].(float64) > before["head_end"].(float64)-90000 {
		t.Errorf("%v\n%v", before, after)
	}
	if rev, data := lastState(t, path); rev != 350 || len(data) != 25000 {
		t.Errorf("state of %d, %d bytes", rev, len(data))
	}
	tidemark(t, "", "cat", path).want(t, 0).prints(t, joined(numbered(400)))
	tidemark(t, "", "verify", path).want(t, 0)
	tidemark(t, "more\n", "append", path).want(t, 0)
	tidemark(t, "", "compact", path, "--json").want(t, 0)
	tidemark(t, "", "compact", path+"x").want(t, 2)
}
