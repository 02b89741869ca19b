package pagelog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// Reindex builds the keyed index anew from the commits, beside the writing that
// goes on, and takes it up when it is whole: a crash before that leaves the
// index as it was. Keys of commits that retention dropped are taken over from
// the old index where that can be read; where not, a key that is not found is
// ErrCompacted from then on.
//
// It reads every commit, in bounded memory, and writes about 600 bytes for each
// key. Errors are those of Commit and of reading; with ErrUncertain the log is
// poisoned.
func (l *Log) Reindex(ctx context.Context) error {
	l.reindexing.Lock()
	defer l.reindexing.Unlock()
	b := rebuild{log: l, ctx: ctx}
	head := b.begin()
	defer b.end()
	if err := b.dropped(); err != nil {
		return err
	}
	if err := b.commits(head); err != nil {
		return err
	}
	for b.drain() > tableKeys {
		if err := b.settle(); err != nil {
			return err
		}
	}
	return b.swap()
}

// rebuild is one building of the index.
type rebuild struct {
	log   *Log
	ctx   context.Context
	lv    levels
	merge merger
	keys  []checkpoint.Entry // newer than all runs
}

// runsKept is how many runs the writer may make while the index is built:
// their numbers and those of the new index must not meet.
const runsKept = 1 << 16

// begin has the keys of commits after the head it returns collected.
func (b *rebuild) begin() point {
	l := b.log
	b.merge.reader = runReader{file: l.file, geo: l.geo}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	b.lv.nextRun = l.index.lv.nextRun + runsKept
	l.index.teeing, l.index.tee = true, nil
	return l.head
}

func (b *rebuild) end() {
	x := b.log.index
	x.mu.Lock()
	defer x.mu.Unlock()
	x.teeing, x.tee = false, nil
}

// dropped takes over what the old index says of commits that retention
// dropped.
func (b *rebuild) dropped() error {
	floor := b.log.oldest().rev
	if floor <= b.log.id.Base.Revision {
		return nil
	}
	x := b.log.index
	x.mu.RLock()
	lv := x.lv
	x.mu.RUnlock()
	b.lv.since = lv.since
	var runs []*run // oldest first
	lv.each(func(r *run) bool { runs = append(runs, r); return true })
	slices.Reverse(runs)
	for _, r := range runs {
		err := b.takeOver(r, floor)
		if errors.Is(err, ErrIndexDamaged) {
			b.lv.since = floor
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeOver adds the entries of one old run up to a revision.
func (b *rebuild) takeOver(r *run, floor uint64) error {
	s := stream{run: r}
	for {
		e, err := s.peek(&b.merge.reader)
		if err != nil || e == nil {
			return err
		}
		if e.Revision <= floor {
			b.keys = append(b.keys, *e)
		}
		s.left = s.left[1:]
		if err := b.settle(); err != nil {
			return err
		}
	}
}

// commits adds the keys of all commits up to head.
func (b *rebuild) commits(head point) error {
	r := b.log.Reader
	bound := bounds{begin: r.oldest(), stop: head, proven: head.end}
	g, err := r.startAfter(bound.begin.rev, &bound)
	if err != nil {
		return err
	}
	var failed error
	err = r.each(g, &bound, func(g *Group) bool {
		b.keys = appendKeys(b.keys, g, r.id)
		failed = b.settle()
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	if errors.Is(err, errStopped) { // derived bytes behind the last commit are damaged
		return nil
	}
	return err
}

// settle writes the keys that were added if there are enough, and merges what
// there is to merge.
func (b *rebuild) settle() error {
	if len(b.keys) < tableKeys {
		return b.ctx.Err()
	}
	if err := b.lv.flush(b.keys, b.place); err != nil {
		return err
	}
	b.keys = nil
	for {
		n, first := b.lv.merges()
		if n == 0 {
			return nil
		}
		if _, err := b.merge.step(&b.lv, first, b.place); err != nil {
			return err
		}
		b.lv.sink()
	}
}

// place has a piece written among the commits.
func (b *rebuild) place(payload []byte) (int64, error) {
	body := frame.AppendRecord(nil, frame.KindIndexRun, 0, frame.Plain, payload)
	t := &Ticket{log: b.log, piece: body, later: true}
	_, err := b.log.do(b.ctx, t)
	return t.placed, err
}

// drain takes the keys that were committed meanwhile and returns how many.
func (b *rebuild) drain() int {
	x := b.log.index
	x.mu.Lock()
	defer x.mu.Unlock()
	n := len(x.tee)
	b.keys = append(b.keys, x.tee...)
	x.tee = nil
	return n
}

// swap makes the new index the index. It is durable on return.
func (b *rebuild) swap() error {
	if len(b.keys) > 0 {
		if err := b.lv.flush(b.keys, b.place); err != nil {
			return err
		}
	}
	if _, err := b.log.do(b.ctx, &Ticket{log: b.log, swap: &b.lv}); err != nil {
		return fmt.Errorf("take up the new index: %w", err)
	}
	return nil
}
