package cursor

import (
	"errors"
	"fmt"
)

// What is wrong with a text, or with a cursor in front of a log. Each is one
// thing; no call returns two of them. [Parse] returns the first two, [Check]
// the others.
var (
	// ErrMalformed: the text is not what this package printed. It was
	// damaged, cut, or never was a cursor.
	ErrMalformed = errors.New("cursor: malformed text")

	// ErrVersion: the text is an undamaged token of a version this package
	// does not know.
	ErrVersion = errors.New("cursor: unknown token version")

	// ErrForeign: the cursor was issued by another log. A fork is another
	// log than its parent.
	ErrForeign = errors.New("cursor: issued by another log")

	// ErrView: the cursor was issued in another view of the log, so what it
	// says was delivered is not what this view would have shown.
	ErrView = errors.New("cursor: issued in another view")

	// ErrFuture: the cursor lies beyond the head. The log lost commits, or
	// was restored from an older copy.
	ErrFuture = errors.New("cursor: beyond the head of the log")

	// ErrCompacted: the log no longer has some commit after the cursor. The
	// error that [Check] returns is a [*CompactedError].
	ErrCompacted = errors.New("cursor: commits after it were dropped")

	// ErrDiverged: the log has another commit at the cursor's revision. It
	// was restored from a copy and went another way.
	ErrDiverged = errors.New("cursor: the log took another history")
)

// CompactedError says which commits are left. It is [ErrCompacted] to
// [errors.Is].
type CompactedError struct {
	Oldest uint64 // the first revision the log still has
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("%v: the oldest left is revision %d", ErrCompacted, e.Oldest)
}

// Recovery is the revision to begin again from: everything after it is left. In
// a log that begins after an imported snapshot and dropped nothing, it is the
// snapshot's last sequence.
func (e *CompactedError) Recovery() uint64 { return max(e.Oldest, 1) - 1 }

// Is reports whether target is [ErrCompacted].
func (e *CompactedError) Is(target error) bool { return target == ErrCompacted }

// History is what [Check] has to know of a log, taken at one moment. For a log
// that has no commits yet Oldest is Head + 1.
type History struct {
	Log LogID

	// Oldest is the first revision the log still has. 0 says the same as 1:
	// nothing was dropped.
	Oldest uint64

	// Head is the last revision the caller would deliver: the last complete
	// one, or the last durable one where only those are shown.
	Head uint64

	// DigestAt returns the digest of the commit at a revision, and the
	// base's digest at the base's revision. It is asked at most once, and
	// for no revision below Oldest - 1 or above Head; so a log has to
	// remember the digest of the last commit it dropped. It must not be nil.
	DigestAt func(revision uint64) (Digest, error)
}

// Check judges whether a reader of view v may resume after c in the log that h
// describes. It returns nil if the first commit after c is the next one to
// deliver, and otherwise the first of these that holds:
//
//  1. [ErrForeign]: c is of another log, or of none.
//  2. [ErrView]: c is of another view. The view of everything is another
//     view than each of its parts.
//  3. [ErrFuture]: c lies beyond h.Head.
//  4. [*CompactedError]: a commit after c was dropped. A cursor exactly at
//     h.Oldest - 1 has lost nothing and is none of these.
//  5. The error of h.DigestAt, wrapped: a commit that was dropped since h was
//     taken may so still be a [*CompactedError].
//  6. [ErrDiverged]: the commit at c.Revision has another digest.
//
// The order is from what is cheap and certain to what must be read: nothing is
// read for a cursor that would be refused anyway, and the history of a dropped
// commit, which nobody can compare any more, is not judged.
func Check(c Cursor, v ViewID, h History) error {
	switch {
	case c.Log != h.Log || c.Log == LogID{}:
		return ErrForeign
	case c.View != v:
		return ErrView
	case c.Revision > h.Head:
		return ErrFuture
	case c.Revision < h.Oldest && h.Oldest-c.Revision > 1:
		return &CompactedError{Oldest: h.Oldest}
	}
	digest, err := h.DigestAt(c.Revision)
	if err != nil {
		return fmt.Errorf("digest of revision %d: %w", c.Revision, err)
	}
	if digest != c.Digest {
		return ErrDiverged
	}
	return nil
}
