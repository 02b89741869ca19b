package observer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

// Request is what an observer asks for.
type Request struct {
	View View
	// After is where to go on: a cursor of this view. The zero cursor begins
	// at the head, and then nothing before it is seen, but in a baseline.
	After cursor.Cursor
	// Baseline asks for the state at the head, and goes on behind it. It goes
	// without After.
	Baseline bool
	// Entries makes the baseline one of the keyed index: every key of the
	// view's namespace, or of all, with the last record added under it, in
	// place of the host's state and commits.
	Entries   bool
	PageItems int   // commits or entries in one page of the baseline, at most; 0: 256
	PageBytes int64 // bytes in one page, but for a larger commit or entry; 0: the hub's
	Notes     bool  // deliver transient notes, too
}

// Subscription is one observer. It belongs to one goroutine at a time, but for
// Close.
type Subscription struct {
	hub   *Hub
	view  View
	id    cursor.ViewID
	notes bool
	at    cursor.Cursor // delivered up to here
	seen  map[string]seen
	base  *baseline // nil: none, or read

	mu     sync.Mutex
	closed context.Context
	close  context.CancelFunc
}

// baseline is what is pinned for the pages of a baseline.
type baseline struct {
	at         cursor.Cursor
	generation uint64 // of the file that it is read from
	entries    bool
	after      uint64 // commits begin behind this revision
	state      []byte
	stateAt    uint64
	items      int
	bytes      int64
}

// Attach begins to observe. It reads no more than the head, the place of the
// cursor, and for a baseline the host's last state.
//
// Errors: those of cursor.Check for a cursor that does not fit, ErrTooMany,
// ErrClosed, and those of reading.
func (h *Hub) Attach(ctx context.Context, q Request) (*Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch {
	case q.Baseline && q.After != (cursor.Cursor{}):
		return nil, errors.New("observer: a request has a cursor to go on from, or a baseline, not both")
	case q.Entries && !q.Baseline:
		return nil, errors.New("observer: a request for entries is one for a baseline: set Baseline, too")
	}
	if err := h.enter(q.Baseline); err != nil {
		return nil, err
	}
	s, err := h.attach(q)
	if err != nil {
		h.leave(q.Baseline)
		return nil, err
	}
	return s, nil
}

func (h *Hub) enter(baseline bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
		return h.err
	case h.subs >= h.opts.MaxSubscriptions:
		return fmt.Errorf("%w: %d subscriptions", ErrTooMany, h.subs)
	case baseline && h.baselines >= h.opts.MaxBaselines:
		return fmt.Errorf("%w: %d baselines", ErrTooMany, h.baselines)
	}
	h.subs++
	if baseline {
		h.baselines++
	}
	return nil
}

func (h *Hub) leave(baseline bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs--
	if baseline {
		h.baselines--
	}
}

func (h *Hub) attach(q Request) (*Subscription, error) {
	s := &Subscription{hub: h, view: q.View, id: q.View.ID(), notes: q.Notes, seen: map[string]seen{}}
	base, head, err := h.now(q)
	if err != nil {
		return nil, err
	}
	s.at = s.cursorAt(head)
	if q.After != (cursor.Cursor{}) {
		history := cursor.History{Log: h.reader.LogID(), Oldest: h.reader.Oldest(), Head: head.Revision, DigestAt: h.reader.DigestAt}
		if err := cursor.Check(q.After, s.id, history); err != nil {
			return nil, err
		}
		s.at = q.After
	}
	if base != nil {
		base.at = s.at
		base.stateAt = max(base.stateAt, h.reader.Oldest()-1)
		s.base = base
	}
	s.closed, s.close = context.WithCancel(context.Background())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.start(head.Revision)
	}
	return s, h.err
}

// now returns the head and what a baseline at it needs, both of one file.
func (h *Hub) now(q Request) (base *baseline, head pagelog.Commit, err error) {
	for {
		generation := h.reader.Generation()
		if q.Baseline { // first: the head is then not older
			if base, err = h.baseline(q); err != nil {
				return nil, head, err
			}
			base.generation = generation
		}
		if head, err = h.reader.Head(); err != nil || h.reader.Generation() == generation {
			return base, head, err
		}
	}
}

// baseline takes what is needed for the pages of a baseline.
func (h *Hub) baseline(q Request) (*baseline, error) {
	b := &baseline{entries: q.Entries, items: or(q.PageItems, 256), bytes: or(q.PageBytes, h.opts.PageBytes)}
	if b.entries {
		b.after = h.reader.Oldest() - 1
		return b, nil
	}
	var err error
	if b.stateAt, b.state, err = h.reader.LastCheckpoint(); errors.Is(err, pagelog.ErrNotFound) {
		err = nil
	}
	b.after = b.stateAt
	return b, err
}

// cursorAt returns the cursor that says that everything up to a commit was
// delivered.
func (s *Subscription) cursorAt(c pagelog.Commit) cursor.Cursor {
	at := s.hub.reader.Cursor(c)
	at.View = s.id
	return at
}

// Cursor returns where the subscription stands: behind the last event that was
// yielded, or at the revision of the baseline.
func (s *Subscription) Cursor() cursor.Cursor { return s.at }

// Close ends the subscription and what waits on it, nothing else. The second
// Close returns ErrClosed.
func (s *Subscription) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Err() != nil {
		return ErrClosed
	}
	s.close()
	s.hub.leave(s.base != nil)
	s.base = nil
	return nil
}

// unpin takes the baseline, once.
func (s *Subscription) pinned() *baseline {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base
}

func (s *Subscription) unpin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base != nil {
		s.base = nil
		s.hub.mu.Lock()
		s.hub.baselines--
		s.hub.mu.Unlock()
	}
}

// Baseline iterates the pages of the baseline: first the host's state, in
// parts, then the commits of the view behind it, up to the revision that all
// pages name. It can be iterated once; ending it early, too, gives up what was
// held for it.
//
// A baseline of entries has those instead, in the order of the records they lead
// to.
//
// Errors end it: ErrCompacted if retention dropped what was to come,
// ErrReplaced if the file was replaced meanwhile, by compaction, too, and those
// of reading, of the index ErrIndexDamaged. A baseline is never put together
// from two files.
func (s *Subscription) Baseline(ctx context.Context) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		b := s.pinned()
		if b == nil {
			yield(Page{}, ErrNoBaseline)
			return
		}
		defer s.unpin()
		if b.state != nil && len(b.state) == 0 && !yield(Page{At: b.at, State: b.state, StateAt: b.stateAt}, nil) {
			return
		}
		for rest := b.state; len(rest) > 0; {
			n := min(int64(len(rest)), b.bytes)
			if !yield(Page{At: b.at, State: rest[:n:n], StateAt: b.stateAt}, nil) {
				return
			}
			rest = rest[n:]
		}
		b.state = nil
		s.pages(ctx, b, yield)
	}
}

// pages yields the pages of commits or entries.
func (s *Subscription) pages(ctx context.Context, b *baseline, yield func(Page, error) bool) {
	p := pager{sub: s, b: b, yield: yield}
	p.begin()
	for at := b.after; at < b.at.Revision && !p.over; {
		read, err := s.hub.page(ctx, at, b.at.Revision+1)
		if err == nil {
			err = s.ended(ctx)
		}
		if err == nil {
			at = read[len(read)-1].Revision
			err = p.put(read)
		}
		if err != nil {
			p.fail(err)
		}
	}
	p.flush()
}

// ended returns why an iteration must end.
func (s *Subscription) ended(ctx context.Context) error {
	if s.closed.Err() != nil {
		return ErrClosed
	}
	return ctx.Err()
}
