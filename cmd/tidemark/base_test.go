package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
)

// TestCreate_Base_L55: a log that begins behind a point of another one goes on
// with its revisions and digests, says where it comes from, and refuses what is
// older, with the oldest revision it has.
func TestCreate_Base_L55(t *testing.T) {
	t.Parallel()
	first := newLog(t, numbered(10)...)
	base := statOf(t, first)["cursor"].(string)
	path := newPath(t)
	tidemark(t, "", "create", path, "--base", base).want(t, 0)
	s := statOf(t, path)
	if s["head"] != 10.0 || s["oldest"] != 11.0 || s["base"] != base || s["log_id"] == statOf(t, first)["log_id"] {
		t.Errorf("%v", s)
	}
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "")
	tidemark(t, "", "verify", path).want(t, 0)
	tidemark(t, "a\nb\n", "append", path, "--ack").want(t, 0).prints(t, "11\n12\n")
	tidemark(t, "a\nb\n", "append", first).want(t, 0)
	if got, want := statOf(t, path)["digest"], statOf(t, first)["digest"]; got != want {
		t.Errorf("the same history has digest %v behind the base, %v in one piece", got, want)
	}
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "a\nb\n")
	tidemark(t, "", "cat", path, "--after", "10").want(t, 0).prints(t, "a\nb\n")
	tidemark(t, "", "cat", path, "--after", "11").want(t, 0).prints(t, "b\n")
	tidemark(t, "", "cat", path, "--after", base).want(t, 5, "another log")

	id, err := cursor.ParseLogID(s["log_id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	older := cursor.Cursor{Position: cursor.Position{Log: id, Revision: 9}}.String()
	for _, after := range []string{"9", "0", older} {
		for _, verb := range []string{"cat", "tail"} {
			tidemark(t, "", verb, path, "--after", after).want(t, 5, "the oldest left is revision 11").prints(t, "")
		}
	}
	other := cursor.Cursor{Position: cursor.Position{Log: id, Revision: 10}, Digest: 1}.String()
	tidemark(t, "", "cat", path, "--after", other).want(t, 5, "another history").prints(t, "")
	same := s["cursor"].(string)
	tidemark(t, "", "cat", path, "--after", same).want(t, 0).prints(t, "a\nb\n")

	tree := tidemark(t, "", "inspect", path).want(t, 0).out
	from, err := cursor.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("base: begins after revision 10 (digest %v) of log %v", from.Digest, from.Log); !strings.Contains(tree, want) {
		t.Errorf("inspect does not say %q:\n%s", want, tree)
	}
	var p struct{ Base string }
	if err := json.Unmarshal([]byte(tidemark(t, "", "inspect", path, "--json").want(t, 0).out), &p); err != nil || p.Base != base {
		t.Error(p, err)
	}

	made, saved := newPath(t), newPath(t)
	tidemark(t, "", "copy", path, made).want(t, 0)
	tidemark(t, "", "salvage", path, saved).want(t, 0)
	for _, again := range []string{made, saved} {
		if s := statOf(t, again); s["base"] != base || s["oldest"] != 11.0 || s["head"] != 12.0 {
			t.Errorf("%v", s)
		}
		tidemark(t, "", "cat", again).want(t, 0).prints(t, "a\nb\n")
	}
	for _, off := range []int64{4096 + 8, 8192 + 8} {
		damageAt(t, path, off, func(b []byte) { b[0] ^= 1 })
	}
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "a\nb\n")
	tidemark(t, "c\n", "append", path, "--ack").want(t, 0).prints(t, "13\n")
}

// TestCreate_BaseRefused_L48: what is no cursor of a whole log is no base, and
// no file is made.
func TestCreate_BaseRefused_L48(t *testing.T) {
	t.Parallel()
	base := statOf(t, newLog(t, "a"))["cursor"].(string)
	c, err := cursor.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	c.View = cursor.ViewOf([]uint32{1}, "")
	for _, tc := range []struct{ token, says string }{
		{"", "malformed"},
		{"10", "malformed"},
		{base[:len(base)-1], "malformed"},
		{base[:20] + "!" + base[21:], "malformed"},
		{c.String(), "another view"},
		{cursor.Cursor{Position: cursor.Position{Revision: 4}}.String(), "another log"},
	} {
		path := newPath(t)
		tidemark(t, "", "create", path, "--base", tc.token).want(t, 5, tc.says, "copy the whole cursor").prints(t, "")
		tidemark(t, "", "stat", path).want(t, 2, "check the path")
	}
}
