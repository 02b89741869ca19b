package pagelog

import (
	"context"
	"slices"

	"github.com/tidemark-log/tidemark/checkpoint"
)

// liftIndex writes the runs of the index that lie below off again, at the head,
// beside the writing that goes on, and takes them up at once. Merges that were
// under way begin again.
func (l *Log) liftIndex(ctx context.Context, off int64) error {
	l.index.mu.RLock()
	due := l.index.lv.below(off)
	l.index.mu.RUnlock()
	if !due {
		return nil
	}
	l.reindexing.Lock()
	defer l.reindexing.Unlock()
	b := rebuild{log: l, ctx: ctx}
	b.begin()
	defer b.end()
	number := b.lv.nextRun
	l.index.mu.RLock()
	b.lv = *l.index.lv
	table := slices.Clone(l.index.table.entries) // keys that come from here on are collected
	l.index.mu.RUnlock()
	b.lv.nextRun = number
	if err := b.lift(off); err != nil {
		return err
	}
	if len(table) > 0 {
		if err := b.lv.flush(table, b.place); err != nil {
			return err
		}
	}
	for b.drain() > tableKeys {
		if err := b.settle(); err != nil {
			return err
		}
	}
	return b.swap()
}

// below reports whether a part of the index lies below off.
func (v *levels) below(off int64) bool {
	for i := range v.all {
		l := &v.all[i]
		if l.building.below(off) || l.main.below(off) || slices.ContainsFunc(l.incoming, func(r *run) bool { return r.below(off) }) {
			return true
		}
	}
	return false
}

func (r *run) below(off int64) bool {
	return r != nil && slices.ContainsFunc(r.Extents, func(x checkpoint.Extent) bool { return x.Offset < off })
}

// lift copies the runs that lie below off, each to the place it has in its
// level.
func (b *rebuild) lift(off int64) error {
	for i := range b.lv.all {
		l := &b.lv.all[i]
		l.building = nil
		var err error
		if l.main, err = b.copyRun(l.main, off); err != nil {
			return err
		}
		l.incoming = slices.Clone(l.incoming)
		for j := range l.incoming {
			if l.incoming[j], err = b.copyRun(l.incoming[j], off); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyRun writes a run again if it lies below off.
func (b *rebuild) copyRun(old *run, off int64) (*run, error) {
	if !old.below(off) {
		return old, nil
	}
	next := b.lv.newRun()
	s := stream{run: old}
	var after checkpoint.Entry
	var out []checkpoint.Entry
	for done := false; !done; {
		for len(out) < pieceEntries {
			e, err := s.peek(&b.merge.reader)
			if err != nil {
				return nil, err
			}
			if done = e == nil; done {
				break
			}
			out = append(out, *e)
			s.left = s.left[1:]
		}
		for len(out) > 0 && (done || len(out) >= pieceEntries) {
			payload, used := next.Piece(nil, &after, out, done)
			start, err := b.place(payload)
			if err != nil {
				return nil, err
			}
			next.Place(start)
			after = out[used-1]
			out = slices.Delete(out, 0, used)
		}
	}
	made := newRun(next)
	made.keys = old.keys
	return made, nil
}
