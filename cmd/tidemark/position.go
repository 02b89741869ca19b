package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

// tokenLike is what was meant as a cursor, whatever became of it.
var tokenLike = regexp.MustCompile(`^tm[0-9]+_`)

// position is what --after names: a revision, a cursor, or nothing.
type position struct {
	set      bool
	revision uint64
	cursor   *cursor.Cursor
}

func parsePosition(text string) (position, error) {
	if text == "" {
		return position{}, nil
	}
	if revision, err := strconv.ParseUint(text, 10, 64); err == nil {
		return position{set: true, revision: revision}, nil
	}
	c, err := cursor.Parse(text)
	switch {
	case err == nil:
		return position{set: true, revision: c.Revision, cursor: &c}, nil
	case tokenLike.MatchString(text):
		return position{}, fmt.Errorf("%w: --after: %w", errPosition, err)
	}
	return position{}, usagef("--after: %q is neither a revision nor a cursor", text)
}

// resolve returns the cursor of the position in the log r reads. A position
// that the history does not have is errPosition; one that lies behind damage is
// the damage.
func (p position) resolve(r *pagelog.Reader) (cursor.Cursor, error) {
	head, damage := r.Head()
	if damage != nil && !errors.Is(damage, pagelog.ErrCorrupt) {
		return cursor.Cursor{}, damage
	}
	at := pagelog.Commit{Revision: p.revision}
	if !p.set {
		at.Revision = r.Oldest() - 1
	}
	if at.Revision > head.Revision && damage != nil {
		return cursor.Cursor{}, damage
	}
	if p.cursor != nil {
		err := cursor.Check(*p.cursor, 0, cursor.History{Log: r.LogID(), Oldest: r.Oldest(), Head: head.Revision, DigestAt: r.DigestAt})
		return *p.cursor, notHere(err)
	}
	var err error
	at.Digest, err = r.DigestAt(at.Revision)
	return r.Cursor(at), notHere(err)
}

// notHere tells a position that the history does not have from other errors.
func notHere(err error) error {
	for _, e := range []error{
		cursor.ErrForeign, cursor.ErrView, cursor.ErrFuture, cursor.ErrCompacted, cursor.ErrDiverged, pagelog.ErrNotFound,
	} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", errPosition, err)
		}
	}
	return err
}
