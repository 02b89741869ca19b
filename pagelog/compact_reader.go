package pagelog

import (
	"errors"
	"fmt"
	"io/fs"
)

// How readers go over to the file that compaction put in the place of theirs.
//
// A Reader is of one file. When it finds that its name leads to another one, and
// its own file is marked as superseded by the generation that the other one has,
// it opens that, proves that the last commit it has seen is there with the same
// digest, and hands all that is asked of it on to the new Reader. Its own file
// is closed at once, so that its space is freed; what was being read from it
// meanwhile is asked again.

// errMoved ends what a reader does with a file that was superseded.
var errMoved = fmt.Errorf("%w by its compacted successor", ErrReplaced)

// now returns the reader of the file that the name leads to, as far as is known.
func (r *Reader) now() *Reader {
	for next := r.next.Load(); next != nil; next = r.next.Load() {
		r = next
	}
	return r
}

// moveOn reports whether an error comes from a file that was superseded, so that
// the same is to be asked of its successor.
func (r *Reader) moveOn(err error) bool {
	return err != nil && r.next.Load() != nil && (errors.Is(err, errMoved) || errors.Is(err, fs.ErrClosed))
}

// ask asks a reader, and its successors if it has to.
func ask[T any](r *Reader, do func(r *Reader) (T, error)) (T, error) {
	for {
		r = r.now()
		v, err := do(r)
		if !r.moveOn(err) {
			return v, err
		}
	}
}

// succeed is called when the name leads to another file: it goes over to it if
// it is the successor, and returns errMoved, or ErrReplaced. The reader's mutex
// is held.
func (r *Reader) succeed() error {
	v := &r.view
	if err := v.header.reread(r.file); err != nil { // the mark was there before the name led away
		return err
	}
	s := v.header.newest()
	if s == nil || s.Superseded == 0 || r.dir == nil {
		return fmt.Errorf("%w under the reader", ErrReplaced)
	}
	next, err := OpenReaderIn(Env{Dir: undirected{r.dir}}, r.name, r.opts)
	if err != nil {
		return fmt.Errorf("%w under the reader: its successor: %w", ErrReplaced, err)
	}
	if err := r.continues(next, s.Superseded); err != nil {
		return errors.Join(err, next.Close())
	}
	r.next.Store(next)
	if err := r.file.Close(); err != nil {
		return err
	}
	return errMoved
}

// continues reports how a file is not the successor of this reader's.
func (r *Reader) continues(next *Reader, generation uint64) error {
	s := next.view.header.newest()
	if next.id.LogID != r.id.LogID || s == nil || s.Generation < generation {
		return fmt.Errorf("%w under the reader", ErrReplaced)
	}
	tip := r.view.tip
	if !r.view.ready || tip.rev < next.begin.rev {
		return nil
	}
	digest, err := next.DigestAt(tip.rev)
	if errors.Is(err, ErrNotFound) || err == nil && uint64(digest) != tip.digest {
		return fmt.Errorf("%w: revision %d, which was read before, is gone or another in the file that replaced the log's", ErrDiverged, tip.rev)
	}
	return err
}
