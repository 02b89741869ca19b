package pagelog

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// Following. A reader in the writer's process is woken by the writer. One in
// another process is woken by the system where that can tell, with a slow look
// beside it because a signal is only a hint; elsewhere it looks often while
// there is news and seldom when there is none.

const (
	slowLook  = time.Second
	quickLook = time.Millisecond
	idleLook  = 250 * time.Millisecond
)

// Wait returns when the head lies beyond a revision; the error is the
// context's, or what Head returns.
func (r *Reader) Wait(ctx context.Context, after uint64) error {
	w := r.newWaiter()
	defer w.stop()
	return w.wait(ctx, after)
}

// Follow iterates the commits after a revision as Commits does, and then goes
// on with those to come, until the context ends: the last error is then the
// context's.
func (r *Reader) Follow(ctx context.Context, after uint64) iter.Seq2[*Group, error] {
	return func(yield func(*Group, error) bool) {
		w := r.newWaiter()
		defer w.stop()
		for {
			for g, err := range r.Commits(after) {
				if err == nil && ctx.Err() != nil {
					err = ctx.Err()
				}
				if !yield(g, err) || err != nil {
					return
				}
				after = g.Revision
			}
			if err := w.wait(ctx, after); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// waiter waits for the head to move. It belongs to one goroutine.
type waiter struct {
	reader  *Reader
	changed <-chan struct{}
	stop    func()
	pause   time.Duration
}

func (r *Reader) newWaiter() *waiter {
	r = r.now()
	w := &waiter{reader: r, stop: func() {}, pause: quickLook}
	if r.live != nil {
		return w
	}
	if changed, stop, err := disk.Watch(r.file); err == nil {
		w.changed, w.stop, w.pause = changed, stop, slowLook
	}
	return w
}

func (w *waiter) wait(ctx context.Context, after uint64) error {
	if w.reader.live != nil {
		if w.reader.opts.Durable {
			return w.reader.live.waitPast(ctx, after, w.reader.live.Durable)
		}
		return w.reader.live.waitPast(ctx, after, w.reader.live.Head)
	}
	if w.changed == nil {
		w.pause = quickLook
	}
	timer := time.NewTimer(w.pause)
	defer timer.Stop()
	for idle := 0; ; {
		b, err := w.reader.look(idle)
		if w.reader.moveOn(err) {
			w.stop()
			*w = *w.reader.now().newWaiter()
			idle = 0
			continue
		}
		if err == nil {
			err = b.damage
		}
		if err != nil || b.stop.rev > after {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.changed:
			idle = 0
		case <-timer.C:
			idle++
		}
		if w.changed == nil {
			w.pause = min(2*w.pause, idleLook)
		}
		timer.Reset(w.pause)
	}
}

// DurableReader returns a reader of this log that shows only what is
// acknowledged, as soon as it is. It ends with the log.
func (l *Log) DurableReader() *Reader {
	return &Reader{file: l.file, id: l.id, geo: l.geo, live: l, opts: ReaderOptions{Durable: true}, begin: l.oldest()}
}

// waitPast is Wait for readers of the writer's process: until what last returns
// lies beyond a revision.
func (l *Log) waitPast(ctx context.Context, after uint64, last func() Commit) error {
	for {
		changed := l.waitChange()
		if last().Revision > after {
			return nil
		}
		if err := errors.Join(l.unusable(), ctx.Err()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// unusable returns why the head will never move again.
func (l *Log) unusable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return ErrClosed
	}
	return l.poisonedLocked()
}
