package authority

import (
	"crypto/sha256"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

// Log is what the authority asks of the log of a run. A *pagelog.Log that was
// opened under the lease's Token is one.
type Log interface {
	LogID() cursor.LogID
	Base() cursor.Cursor
	Fence() pagelog.Fence
	Head() pagelog.Commit
	Durable() pagelog.Commit
}

// fenceDomain keeps the name of a run in its log apart from every other hash.
const fenceDomain = "tidemark.run-log/v1"

// fence is the right of the record's holder to write the run's log. It names
// this one run: a run of the same ID elsewhere has another instance.
func (r *record) fence() pagelog.Fence {
	p := make(parts, 0, 256)
	p.text(fenceDomain)
	p.add(r.scope[:]...)
	p.text(r.runID)
	p.add(r.nonce[:]...)
	return pagelog.Fence{Run: sha256.Sum256(p), Token: r.transition}
}

// Token is the fencing token of the lease as it stands now: open the run's log
// with it, and no earlier holder writes there any more. Resume makes a new one.
func (l *Lease) Token() (pagelog.Fence, error) {
	const op = "token"
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return pagelog.Fence{}, fail(op, ErrClosed)
	case l.hold.fate != nil:
		return pagelog.Fence{}, fail(op, l.hold.fate)
	}
	return l.hold.record.fence(), nil
}

// Continue takes the run's log for this lease, and tells the revision of the
// run's next commit. It comes after opening the log under Token and before the
// first commit, once after Start, Resume and Activate.
//
// A run that was suspended goes on where it was: in the same log, whose head is
// still the commit the claim was bound to, or in a fresh one that has this point
// as its base. ErrLog: this log is neither. Nothing is written.
func (l *Lease) Continue(log Log) (next uint64, err error) {
	const op = "continue"
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return 0, fail(op, ErrClosed)
	case l.hold.fate != nil:
		return 0, fail(op, l.hold.fate)
	case l.hold.record.phase != Active || l.log != nil:
		return 0, fail(op, ErrState)
	case log == nil:
		return 0, fail(op, ErrInvalid)
	}
	at, err := l.hold.boundary(op, log)
	if err != nil {
		return 0, err
	}
	if was := l.hold.record.position; was != (position{}) && at != was {
		fresh := at
		fresh.logID = was.logID
		if log.Base() != was.cursor() || fresh != was {
			return 0, notTheLog(op, "position")
		}
	}
	l.log = log
	return at.revision + 1, nil
}

// boundary is the head of a log that is the held run's: complete, durable, and
// with nothing behind it.
func (h *hold) boundary(op string, log Log) (position, error) {
	has, want := log.Fence(), h.record.fence()
	if !equal(has.Run, want.Run) || has.Token != want.Token {
		return position{}, notTheLog(op, "token")
	}
	durable, head := log.Durable(), log.Head() // in this order: neither goes back
	if head.Revision != durable.Revision || head.Digest != durable.Digest {
		return position{}, notTheLog(op, "not durable")
	}
	return position{log.LogID(), head.Revision, uint64(head.Digest)}, nil
}

// bind is the boundary that a snapshot claims.
func (h *hold) bind(op string, log Log, sequence uint64) (position, error) {
	if log == nil {
		return position{}, notTheLog(op, "none")
	}
	at, err := h.boundary(op, log)
	if err == nil && at.revision != sequence {
		err = notTheLog(op, "position")
	}
	return at, err
}

// notTheLog is ErrLog with what is the matter.
func notTheLog(op, class string) error { return &Error{Op: op, Class: class, err: ErrLog} }

// cursor is where the run's log must be; zero if the run was never suspended.
func (p position) cursor() cursor.Cursor {
	return cursor.Cursor{Position: cursor.Position{Log: p.logID, Revision: p.revision}, Digest: cursor.Digest(p.digest)}
}

// Position is where the run's log was when the envelope was signed: the log, its
// last revision and the digest there. The host compares before Consume, with a
// reader; Lease.Continue does it again for the writer.
func (i *Import) Position() (cursor.Cursor, error) {
	const op = "import position"
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.ready(op); err != nil {
		return cursor.Cursor{}, err
	}
	return i.hold.record.position.cursor(), nil
}
