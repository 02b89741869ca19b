package pagelog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// Log is a log open for writing. All methods may run concurrently, except that
// a Batch belongs to one goroutine at a time. It has everything a Reader has;
// those methods see every complete commit of this Log at once.
type Log struct {
	*Reader

	env       Env
	file      disk.File
	id        *frame.Identity
	geo       *frame.Geometry
	opts      Options
	zeroAhead bool
	report    Report

	// What only the writing role touches.
	builder *frame.Builder
	space   space
	checks  checkpoints
	indexer indexer

	// What only the syncing role touches.
	slots slots

	fenced *incarnation // nil: the log belongs to no run

	readback struct{ writing, syncing readback } // one for each role

	mu       sync.Mutex
	queue    queue     // tickets nobody has taken yet, in order of their revisions to be
	taken    []*Ticket // tickets of the write under way
	alone    int       // tickets at the head of the queue that are written one by one
	unacked  []*Ticket // written, waiting for a sync that was issued after it
	expected int       // tickets in line when a sync ended, and those it settled: more may be in line soon
	hurry    int       // writes that do not wait for them

	writing bool // somebody has the writing role
	syncing bool // somebody has the syncing role
	want    bool // a sync is wanted
	running bool // a goroutine of the log's own does the work nobody waits for
	closing bool
	cause   error         // what poisoned the log
	made    []made        // checkpoints written and not yet named by a slot
	kept    made          // newest checkpoint that is durable; zero: there is none
	head    point         // last complete group
	durable point         // last acknowledged group; durable.end <= head.end
	named   int64         // durable end that the newest slot names
	idle    *time.Timer   // writes a slot after some idleness; nil: never
	quiet   chan struct{} // closed when closing and nothing is under way
	changed chan struct{} // closed and replaced when the head moves, if somebody waits
	stats   Stats

	index      *index         // has its own lock; the writing role changes it
	features   frame.Features // turned on after creation; the writing role changes it, under mu
	reindexing sync.Mutex

	retaining sync.Mutex        // one Retain at a time
	pins      map[*pin]struct{} // under mu
	dropping  uint64            // revisions up to here are dropped, or about to be; under mu
	waiting   int               // who wait for the syncing role in takeSync; under mu
	given     chan struct{}     // closed when the syncing role is given back, if somebody waits; under mu
}

// Commit says what one commit became.
type Commit struct {
	Revision uint64
	Digest   cursor.Digest
	Count    int  // records
	Durable  bool // acknowledged: it survives the loss of power
}

func newLog(env Env, f disk.File, h *header, o Options) *Log {
	l := &Log{env: env, file: f, id: &h.id, geo: h.geo, opts: o, builder: frame.NewBuilder(h.geo)}
	l.slots.now = env.Now
	l.Reader = &Reader{file: f, id: &h.id, geo: h.geo, live: l}
	return l
}

// start puts the recovered state in place. The log is not shared yet.
func (l *Log) start(r *recovery) {
	l.report = r.report
	l.head = r.walk.at
	l.head.epoch = r.epoch
	l.durable = l.head
	l.named = l.slots.cur.Durable.Offset
	l.Reader.begin = pointAt(l.slots.cur.Floor)
	l.checks = r.checks
	l.kept = r.checks.last
	l.slots.cur.Check, l.slots.cur.Before = r.checks.last.group, r.before // the next slot says so
	l.features = l.slots.cur.Features
	l.index = r.index
	l.indexer.merge.reader = runReader{file: l.file, geo: l.geo}
	l.space = space{
		file: l.file, zeroAhead: l.zeroAhead, most: int64(l.id.MaxSize), zeroed: l.head.end, reserved: l.head.end,
	}
	l.stats.Recovery = r.report
}

// startIdle begins to watch for idleness. Nobody else may hold a role.
func (l *Log) startIdle() {
	if l.env.Idle > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle = time.AfterFunc(l.env.Idle, l.onIdle)
	}
}

// Report says what opening found and did.
func (l *Log) Report() Report { return l.report }

// Head returns the last complete commit. Its Count is 0: that is not kept.
func (l *Log) Head() Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Commit{Revision: l.head.rev, Digest: cursor.Digest(l.head.digest), Durable: l.durable.rev == l.head.rev}
}

// Durable returns the last acknowledged commit. Its Count is 0.
func (l *Log) Durable() Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Commit{Revision: l.durable.rev, Digest: cursor.Digest(l.durable.digest), Durable: true}
}

// points returns head and durable end for readers of this process.
func (l *Log) points() (head, durable point, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		err = ErrClosed
	}
	return l.head, l.durable, err
}

// Sync makes every commit that is complete when it is called durable.
// ErrUncertain or ErrPoisoned mean that it did not.
func (l *Log) Sync(ctx context.Context) error {
	_, err := l.do(ctx, &Ticket{log: l})
	return err
}

// Close makes everything durable, names it in a slot and gives the lock back.
// Commits that were submitted before are finished; later ones fail with
// ErrClosed. A poisoned log is closed without writing, and Close then returns
// the *PoisonedError. The second Close returns ErrClosed.
//
// A process that never calls Close loses nothing acknowledged.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closing = true
	if l.idle != nil {
		l.idle.Stop()
	}
	l.quiet = make(chan struct{})
	l.want = l.want || l.head.end > l.durable.end
	l.work(nil)
	l.checkQuiet()
	quiet := l.quiet
	l.mu.Unlock()
	<-quiet
	err := l.poisoned()
	if err == nil {
		err = l.nameHead()
	}
	l.notify()
	return errors.Join(err, l.file.Close(), l.env.Dir.Close())
}

// nameHead leaves a slot on disk that names the head. Nothing else is under
// way any more.
func (l *Log) nameHead() error {
	if l.named == l.durable.end && l.slots.allSynced() {
		return nil
	}
	l.slots.cur.Features = l.features
	if err := l.slots.name(l.durable.place()); err != nil {
		return noSpace("everything is durable, but there is no slot that says so", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("sync the last slot: %w", err)
	}
	return nil
}

// poisoned returns the *PoisonedError of a poisoned log, else nil.
func (l *Log) poisoned() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.poisonedLocked()
}

func (l *Log) poisonedLocked() error {
	if l.cause == nil {
		return nil
	}
	return &PoisonedError{Durable: l.durable.rev, Cause: l.cause}
}

// notify wakes who waits for the head to move.
func (l *Log) notify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notifyLocked()
}

func (l *Log) notifyLocked() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// waitChange returns a channel that is closed when the head moves or the log
// is closed or poisoned.
func (l *Log) waitChange() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}
