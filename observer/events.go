package observer

import (
	"context"
	"iter"
)

// bookmarkEvery is how many commits of other views may pass without a bookmark.
const bookmarkEvery = 1024

// Events iterates what follows, and waits for what is to come, until the
// context ends: the last error is then the context's. Ending it ends only the
// waiting: the next call goes on where this one was left, and so does Attach
// with a cursor of one of its events.
//
// Other errors end it, too, and come again: ErrCompacted if retention dropped
// what was to come, ErrClosed, and those of reading the log.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		e := stream{s: s, ctx: ctx, yield: yield}
		for e.step() {
		}
	}
}

// stream is one iteration of events.
type stream struct {
	s      *Subscription
	ctx    context.Context
	yield  func(Event, error) bool
	batch  [64]*Commit
	passed int  // commits since the last event that moved the cursor
	lagged bool // a Lag was yielded since the observer was last in the ring
}

func (e *stream) step() bool {
	if err := e.s.ended(e.ctx); err != nil {
		return e.fail(err)
	}
	got, behind, changed, err := e.s.hub.take(e.batch[:0], e.s.at.Revision)
	switch {
	case len(got) > 0:
		e.lagged = false
		return e.deliver(got)
	case behind > 0:
		return e.catchUp(behind)
	}
	if e.passed > 0 {
		return e.bookmark()
	}
	if e.s.notes {
		if note, ok := e.s.hub.due(e.s.at, e.s.seen); ok {
			return e.yield(Event{Kind: Noted, At: e.s.at, Note: note}, nil)
		}
	}
	if err != nil {
		return e.fail(err)
	}
	select {
	case <-changed:
	case <-e.ctx.Done():
	case <-e.s.closed.Done():
	}
	return true
}

func (e *stream) fail(err error) bool {
	e.yield(Event{At: e.s.at}, err)
	return false
}

// deliver yields commits, which follow the cursor without a gap.
func (e *stream) deliver(commits []*Commit) bool {
	clear(e.s.seen)
	for _, c := range commits {
		if err := e.s.ended(e.ctx); err != nil {
			return e.fail(err)
		}
		if c.Revision != e.s.at.Revision+1 {
			panic("internal error: observer: a commit is missing")
		}
		e.s.at = e.s.cursorAt(c.Commit)
		if shown := e.s.view.through(c); shown != nil {
			e.passed = 0
			if !e.yield(Event{Kind: Committed, At: e.s.at, Commit: shown}, nil) {
				return false
			}
		} else if e.passed++; e.passed >= bookmarkEvery && !e.bookmark() {
			return false
		}
	}
	return true
}

func (e *stream) bookmark() bool {
	e.passed = 0
	return e.yield(Event{Kind: Bookmark, At: e.s.at}, nil)
}

// catchUp serves one page from the file.
func (e *stream) catchUp(behind uint64) bool {
	if !e.lagged {
		e.lagged = true
		return e.yield(Event{Kind: Lag, At: e.s.at, Skipped: behind}, nil)
	}
	page, err := e.s.hub.page(e.ctx, e.s.at.Revision, e.s.at.Revision+1+behind)
	if err != nil {
		return e.fail(err)
	}
	return e.deliver(page)
}
