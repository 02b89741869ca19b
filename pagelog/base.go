package pagelog

import (
	"fmt"

	"github.com/tidemark-log/tidemark/cursor"
)

// Base returns the point of another log that this one begins after; zero if
// there is none.
func (r *Reader) Base() cursor.Cursor {
	b := r.id.Base
	return cursorAt(b.LogID, b.Revision, b.Digest)
}

// FromBase takes up a cursor of the log that this one begins after. At the base
// itself nothing is missing, and what is returned is a cursor of this log. An
// older one lost the commits up to the base: *cursor.CompactedError, whose
// Recovery is the base's revision, the place to begin again from. A newer one is
// cursor.ErrFuture, one of any other log cursor.ErrForeign, and another history
// at the base cursor.ErrDiverged. A cursor of this log is returned as it is.
func (r *Reader) FromBase(c cursor.Cursor) (cursor.Cursor, error) {
	base := r.Base()
	switch {
	case c.Log == r.LogID():
		return c, nil
	case base.Log == cursor.LogID{} || c.Log != base.Log:
		return cursor.Cursor{}, cursor.ErrForeign
	case c.Revision < base.Revision:
		return cursor.Cursor{}, &cursor.CompactedError{Oldest: base.Revision + 1}
	case c.Revision > base.Revision:
		return cursor.Cursor{}, fmt.Errorf("%w: revision %d, it began after %d of that log", cursor.ErrFuture, c.Revision, base.Revision)
	case c.Digest != base.Digest:
		return cursor.Cursor{}, cursor.ErrDiverged
	}
	c.Log = r.LogID()
	return c, nil
}
