package observer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tidemark-log/tidemark/pagelog"
)

// Options is how a hub works. The zero value is a good choice.
type Options struct {
	RingBytes        int64 // of the newest commits that are kept for all; 0: 4 MiB
	PageBytes        int64 // of commits that one observer reads ahead from the file; 0: 256 KiB
	MaxSubscriptions int   // at once; 0: 10,000
	MaxBaselines     int   // open at once, each of which holds the host's state; 0: 16
	Complete         bool  // show commits when they are complete, before they are durable; NewHub only
}

const (
	maxChannels = 256 // channels of notes at a time
	readers     = 4   // observers that read the file at a time
)

// Hub is shared by all who observe one log. All methods may run concurrently.
type Hub struct {
	reader *pagelog.Reader
	opts   Options
	stop   context.CancelFunc
	done   chan struct{}   // closed when nothing reads ahead any more; nil: not begun
	slots  chan struct{}   // one for each observer that reads the file
	halted context.Context // ends with Close

	mu        sync.RWMutex
	ring      []*Commit // revisions first, first+1, …
	first     uint64    // revision of ring[0], or the next one to come
	bytes     int64     // of the ring
	err       error     // why nothing more comes
	changed   chan struct{}
	subs      int
	baselines int
	notes     map[string]*board
	noted     uint64 // notes so far
}

// NewHub returns a hub over a log that this process writes. It must be closed
// before the log.
func NewHub(log *pagelog.Log, o Options) *Hub {
	if o.Complete {
		return newHub(log.Reader, o)
	}
	return newHub(log.DurableReader(), o)
}

// NewReaderHub returns a hub over a log that another process writes, or none.
// What it shows, durable or complete commits, is what the reader shows. It must
// be closed before the reader.
func NewReaderHub(r *pagelog.Reader, o Options) *Hub { return newHub(r, o) }

func newHub(r *pagelog.Reader, o Options) *Hub {
	o.RingBytes, o.PageBytes = or(o.RingBytes, 4<<20), or(o.PageBytes, 256<<10)
	o.MaxSubscriptions, o.MaxBaselines = or(o.MaxSubscriptions, 10_000), or(o.MaxBaselines, 16)
	h := &Hub{reader: r, opts: o, slots: make(chan struct{}, readers), changed: make(chan struct{}), notes: map[string]*board{}}
	h.halted, h.stop = context.WithCancel(context.Background())
	return h
}

func or[T int | int64](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Close ends the hub and all that wait on it, with ErrClosed. The log stays
// open.
func (h *Hub) Close() error {
	h.mu.Lock()
	if errors.Is(h.err, ErrClosed) {
		h.mu.Unlock()
		return ErrClosed
	}
	h.err = ErrClosed
	h.tell()
	done := h.done
	h.mu.Unlock()
	h.stop()
	if done != nil {
		<-done
	}
	return nil
}

// tell wakes who waits. mu is held.
func (h *Hub) tell() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// start has commits after the head read ahead from now on. mu is held.
func (h *Hub) start(head uint64) {
	if h.done != nil {
		return
	}
	h.first = head + 1
	h.done = make(chan struct{})
	go h.follow(head)
}

// follow is the hub's one goroutine: it reads each commit once, for all.
func (h *Hub) follow(head uint64) {
	defer close(h.done)
	for g, err := range h.reader.Follow(h.halted, head) {
		if err != nil {
			h.end(err)
			return
		}
		h.append(newCommit(g))
	}
}

func (h *Hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
		h.tell()
	}
}

// append puts a commit into the ring and drops what has no room any more, and
// the notes that it comes after.
func (h *Hub) append(c *Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ring = append(h.ring, c)
	h.bytes += c.size
	n := 0
	for n < len(h.ring) && h.bytes > h.opts.RingBytes {
		h.bytes -= h.ring[n].size
		h.ring[n] = nil
		n++
	}
	h.ring, h.first = h.ring[n:], h.first+uint64(n)
	for channel, b := range h.notes {
		if b.after < c.Revision {
			delete(h.notes, channel)
		}
	}
	h.tell()
}

// take returns what follows a revision: commits that are in the ring, at most
// as many as dst has room for; or how many are missing between the revision and
// the ring; or neither, and the channel that is closed when something changes.
func (h *Hub) take(dst []*Commit, after uint64) (got []*Commit, behind uint64, changed <-chan struct{}, err error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	next := after + 1
	switch {
	case next < h.first:
		return nil, h.first - next, nil, nil
	case next < h.first+uint64(len(h.ring)):
		at := next - h.first
		return append(dst[:0], h.ring[at:min(at+uint64(cap(dst)), uint64(len(h.ring)))]...), 0, nil, nil
	}
	return nil, 0, h.changed, h.err
}

// page reads commits after a revision from the file: those up to before, but
// not more than a page, and at least one.
func (h *Hub) page(ctx context.Context, after, before uint64) ([]*Commit, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.halted.Done():
		return nil, ErrClosed
	}
	var page []*Commit
	size := int64(0)
	for g, err := range h.reader.Commits(after) {
		if err != nil && len(page) == 0 {
			return nil, err
		}
		if err != nil { // it comes again, first thing
			break
		}
		c := newCommit(g)
		page, size = append(page, c), size+c.size
		if size >= h.opts.PageBytes || c.Revision+1 >= before {
			break
		}
	}
	if len(page) == 0 {
		return nil, fmt.Errorf("%w: revision %d", pagelog.ErrNotFound, after+1)
	}
	return page, nil
}
