package fuzz

import (
	"errors"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

// FuzzCursor takes up a cursor in an edited log. It is taken up exactly where
// it was issued, or refused: what follows it are commits that were written, the
// first of them right behind it.
func FuzzCursor(f *testing.F) {
	for i, o := range originals() {
		f.Add([]byte{byte(i)}, "", uint64(i), uint64(0))
		for _, c := range o.commits {
			at := cursor.Cursor{Position: cursor.Position{Log: o.id.LogID, Revision: c.revision}, Digest: cursor.Digest(c.digest)}
			f.Add([]byte{byte(i), 0, byte(3 * i), 2, 1, 1, 1, 1, 1}, at.String(), uint64(0), uint64(0))
		}
	}
	f.Fuzz(func(t *testing.T, program []byte, token string, revision, digest uint64) {
		if len(program) > 1+4*stepSize {
			return
		}
		e := runProgram(program)
		c, err := cursor.Parse(token)
		if err != nil {
			if !errors.Is(err, cursor.ErrMalformed) && !errors.Is(err, cursor.ErrVersion) {
				t.Fatalf("parse: %v", err)
			}
			c = cursor.Cursor{Position: cursor.Position{Log: e.id.LogID, Revision: revision}, Digest: cursor.Digest(digest)}
		} else if c.String() != token {
			t.Fatalf("%q prints as %q", token, c)
		}
		r, err := pagelog.OpenReaderIn(newWorld(e.b).env(), logName, pagelog.ReaderOptions{})
		if err != nil {
			e.refused(t, "reader", err)
			return
		}
		commits, err := read(r.From(c))
		if err != nil && !errors.Is(err, cursor.ErrFuture) && !errors.Is(err, cursor.ErrForeign) && !errors.Is(err, cursor.ErrView) {
			e.refused(t, "taking up a cursor", err)
		}
		e.follows(t, c, commits)
	})
}

// follows checks what came behind a cursor that was taken up.
func (e *edited) follows(t *testing.T, c cursor.Cursor, commits []commit) {
	if len(commits) == 0 || e.class == forged {
		return
	}
	if commits[0].revision != c.Revision+1 || c.Log != e.id.LogID {
		t.Errorf("revision %d follows a cursor at %d", commits[0].revision, c.Revision)
	}
	issued := c.Revision == 0 && c.Digest == 0
	for known := range written() {
		issued = issued || known.revision == c.Revision && known.digest == uint64(c.Digest)
	}
	if !issued {
		t.Errorf("a cursor that no log issued was taken up: %v", c)
	}
	for _, k := range commits {
		if !written()[k] {
			t.Errorf("revision %d was never written", k.revision)
		}
	}
}
