package main

import (
	"encoding/base32"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
)

// TestPosition_EveryCursorError_L48: each thing that can be wrong with a cursor
// has exit code 5, its own reason and advice, in every verb that takes one.
func TestPosition_EveryCursorError_L48(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b", "c")
	token := statOf(t, path)["cursor"].(string)
	good, err := cursor.Parse(token)
	if err != nil {
		t.Fatal(err)
	}
	change := func(do func(c *cursor.Cursor)) string {
		c := good
		do(&c)
		return c.String()
	}
	later := "tm2" + token[3:len(token)-7] // as a later version prints it: undamaged
	sum := crc32.Checksum([]byte(later), crc32.MakeTable(crc32.Castagnoli))
	later += base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding).
		EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	if _, err := cursor.Parse(later); !errors.Is(err, cursor.ErrVersion) {
		t.Fatalf("%q: %v", later, err)
	}
	based := newPath(t)
	tidemark(t, "", "create", based, "--base", token).want(t, 0)
	id, err := cursor.ParseLogID(statOf(t, based)["log_id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, token, says string }{
		{path, token[:30] + token[31:], "malformed"},
		{path, later, "unknown token version"},
		{path, change(func(c *cursor.Cursor) { c.Log[3] ^= 1 }), "another log"},
		{path, change(func(c *cursor.Cursor) { c.Revision++ }), "beyond the head"},
		{path, change(func(c *cursor.Cursor) { c.Digest++ }), "another history"},
		{path, change(func(c *cursor.Cursor) { c.View = cursor.ViewOf([]uint32{7}, "") }), "another view"},
		{based, change(func(c *cursor.Cursor) { c.Log, c.Revision = id, 2 }), "the oldest left is revision 4"},
	} {
		for _, args := range [][]string{{"cat"}, {"tail"}, {"tail", "--follow"}} {
			args = append(args, tc.path, "--after", tc.token)
			tidemark(t, "", args...).want(t, 5, tc.says, "leave --after out").prints(t, "")
		}
	}
}
