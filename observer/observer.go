// Package observer lets any number of readers watch a log without one of them
// ever holding up the writer, or losing a commit.
//
// A Hub stands over one log, in the writer's process or in another. Attach
// gives a Subscription: a baseline, which is the log's state at exactly one
// revision R, and a continuation, which is every commit from R + 1 on, once,
// in order, whatever the writer does meanwhile.
//
//	hub := observer.NewHub(log, observer.Options{})
//	sub, err := hub.Attach(ctx, observer.Request{Baseline: true})
//	for page, err := range sub.Baseline(ctx) { … }
//	for event, err := range sub.Events(ctx) { … }
//
// Delivery is pull: who does not ask is not given anything, and takes no memory
// but a number. The newest commits are in one ring that all share. Who falls
// out of it sees one Lag event, is served from the file, a page at a time, and
// comes back into the ring; no commit is skipped and none repeated.
//
// Only what is durable is shown, unless Options.Complete asks for what is
// complete; each commit says which it was when it was read.
//
// Every event carries a cursor: everything in the view up to there was
// delivered once that event was handled. Attach takes such a cursor up again,
// in this process or another, or refuses it with the reason (see package
// cursor); it never begins somewhere else than where it was asked to.
package observer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

var (
	// ErrTooMany: the hub has as many subscriptions, or open baselines, as its
	// options allow.
	ErrTooMany = errors.New("observer: too many at once")
	// ErrClosed: the hub or the subscription was closed.
	ErrClosed = errors.New("observer: closed")
	// ErrNoBaseline: no baseline was asked for, or it was iterated before.
	ErrNoBaseline = errors.New("observer: there is no baseline to read")
)

// View is what an observer wants to see. The zero View is everything.
type View struct {
	Kinds     []uint32 // of records; none: all
	Namespace string   // only records with a key in it; empty: all
}

// ID returns the identity that cursors of this view carry.
func (v View) ID() cursor.ViewID { return cursor.ViewOf(v.Kinds, v.Namespace) }

// everything reports whether the view leaves nothing out.
func (v View) everything() bool { return len(v.Kinds) == 0 && v.Namespace == "" }

// Commit is a commit as observers see it. It is shared and never changes: do
// not write to what it holds, and keep it as long as you like.
type Commit struct {
	pagelog.Commit
	Time    time.Time // when it was written, by the writer's clock: advisory
	Records []Record  // those the view shows, without the keys
	Keys    []Key     // of the records in Records

	size int64 // bytes it takes in memory, about
}

// Record is a record of a commit.
type Record struct {
	Index    uint32 // in the commit
	Kind     uint32
	Required bool
	Data     []byte
	Err      error // a newer version stored it in a way this one cannot read
}

// Key is a key that leads to a record.
type Key struct {
	Record    uint32 // its index in the commit
	Namespace string
	Key       string
}

// overhead is about what a record or key takes beside its bytes.
const overhead = 96

// newCommit copies a group.
func newCommit(g *pagelog.Group) *Commit {
	c := &Commit{Commit: g.Commit, Time: g.Time, size: overhead}
	total, index := 0, uint32(0)
	for r := range g.Records() {
		total += len(r.Data)
	}
	data := make([]byte, 0, total)
	for r, err := range g.Records() {
		if k, bad := checkpoint.DecodeKey(r.Data); r.Kind == checkpoint.KindKey && err == nil && bad == nil {
			c.Keys = append(c.Keys, Key{k.Record, string(k.Namespace), string(k.Key)})
		} else {
			at := len(data)
			data = append(data, r.Data...)
			c.Records = append(c.Records, Record{index, r.Kind, r.Required, data[at:len(data):len(data)], err})
		}
		c.size += overhead + int64(len(r.Data))
		index++
	}
	return c
}

// through returns what the view shows of a commit: nil for nothing.
func (v View) through(c *Commit) *Commit {
	if v.everything() {
		return c
	}
	shown := *c
	shown.Records, shown.Keys = nil, nil
	for _, r := range c.Records {
		if v.shows(c, &r) {
			shown.Records = append(shown.Records, r)
		}
	}
	if len(shown.Records) == 0 {
		return nil
	}
	for _, k := range c.Keys {
		if slices.ContainsFunc(shown.Records, func(r Record) bool { return r.Index == k.Record }) {
			shown.Keys = append(shown.Keys, k)
		}
	}
	return &shown
}

func (v View) shows(c *Commit, r *Record) bool {
	if len(v.Kinds) > 0 && !slices.Contains(v.Kinds, r.Kind) {
		return false
	}
	return v.Namespace == "" || slices.ContainsFunc(c.Keys, func(k Key) bool {
		return k.Record == r.Index && k.Namespace == v.Namespace
	})
}

// EventKind says what an event is.
type EventKind uint8

// The kinds of events.
const (
	Committed EventKind = iota // a commit of the view
	Bookmark                   // nothing to see, but the cursor moved on over commits of other views
	Lag                        // the observer fell out of the ring, and is served from the file
	Noted                      // a transient note
)

// String returns the kind in one word.
func (k EventKind) String() string {
	switch k {
	case Committed:
		return "commit"
	case Bookmark:
		return "bookmark"
	case Lag:
		return "lag"
	case Noted:
		return "note"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Event is one thing that an observer is told.
type Event struct {
	Kind    EventKind
	At      cursor.Cursor // everything in the view up to here was delivered
	Commit  *Commit       // if Committed
	Note    Note          // if Noted
	Skipped uint64        // if Lag: commits that are no longer in the ring
}

// Note is transient progress. It is in no log, and who does not look in time
// does not see it.
type Note struct {
	Channel string
	Data    []byte // the newest; shared, do not write to it
	Count   uint64 // notes that this one stands for, itself included
}

// Entry is a key as it was at the revision of a baseline: the last record that
// was added under it.
type Entry struct {
	Namespace string
	Key       string
	Revision  uint64 // of the commit that has the record
	Record    Record // shared, do not write to it
}

// Page is a part of a baseline.
type Page struct {
	At      cursor.Cursor // the revision of the baseline, the same in all its pages
	Oldest  uint64        // of a baseline of entries: keys last used before this revision were dropped with their records, and are not in it
	Entries []Entry       // of a baseline of entries, which has nothing else: by revision and record
	State   []byte        // a part of the state that the host kept with Checkpoint; pages of it come first
	StateAt uint64        // the revision whose state it is
	Commits []*Commit     // commits of the view behind that state, in order
}
