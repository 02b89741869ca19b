package pagelog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// What package fork needs of the engine: a boundary of the source that is
// proven, and the first commit of the new log. The copying is done there.

// Branch is a place in a log from which a fork may begin.
type Branch struct {
	Identity frame.Identity // of the source
	File     disk.File      // of the source; it stays the reader's
	At       frame.Place    // the boundary: raw end, revision and digest
	Epoch    uint64         // of the last group before it
	Slot     frame.Slot     // what a log that ends at the boundary says of itself: durable end, floor, checkpoints, features

	reader *Reader
	state  frame.Place // the host's last blob, if the checkpoint that the slot names does not lead to it
	data   []byte
}

// errUnproven means that a commit is not proven durable.
var errUnproven = errors.New("not proven durable")

// Unproven reports whether Branch refused a commit because nothing proves it
// durable, or because it is none.
func Unproven(err error) bool { return errors.Is(err, errUnproven) || errors.Is(err, ErrNotFound) }

// Branch returns the boundary behind the commit at a revision: behind the
// derived groups, too, that follow it and are proven durable. 0 is the last
// commit that is proven durable. It only looks at what slots and headers prove,
// or at what this process's own writer acknowledged, and syncs nothing.
//
// Errors: see Unproven; ErrCompacted; ErrCorrupt; and those of reading.
func (r *Reader) Branch(revision uint64) (*Branch, error) {
	return ask(r, func(r *Reader) (*Branch, error) { return r.branch(revision) })
}

func (r *Reader) branch(revision uint64) (*Branch, error) {
	b, err := r.bounds()
	if err != nil {
		return nil, err
	}
	durable, err := r.durablePoint(b)
	if err != nil {
		return nil, err
	}
	switch {
	case revision == 0:
		revision = durable.rev
	case revision > b.stop.rev && b.damage != nil:
		return nil, b.damage
	case revision > durable.rev:
		return nil, fmt.Errorf("%w: revision %d, the last durable one is %d", errUnproven, revision, durable.rev)
	case revision < b.begin.rev:
		return nil, compacted(&b)
	}
	at := durable
	if revision < durable.rev {
		for at, err = r.endOf(revision, &b, durable.end); r.moved(&b, err); {
			at, err = r.endOf(revision, &b, durable.end)
		}
		if err != nil {
			return nil, err
		}
	}
	o := &Branch{Identity: *r.id, File: r.file, reader: r}
	return o, o.settle(at)
}

// endOf returns the last group end of a revision at or below most.
func (r *Reader) endOf(revision uint64, b *bounds, most int64) (point, error) {
	var g Group
	r.prepare(&g, b, int(r.geo.PageSize()))
	g.walk.at = b.begin
	if revision > b.begin.rev {
		if err := r.at(revision, &g, b); err != nil {
			return point{}, err
		}
	}
	g.walk.win.limit = most
	at := g.walk.at
	for {
		if err := g.walk.next(); err != nil || !g.walk.cur.Derived() {
			return at, notFault(err)
		}
		at = g.walk.at
	}
}

// Again looks at the source once more and says what now holds of the same
// boundary: retention may have dropped more. ErrCompacted if the boundary
// itself is gone.
func (o *Branch) Again() (*Branch, error) {
	b, err := o.reader.bounds()
	if err != nil {
		return nil, err
	}
	if b.begin.end > o.At.Offset {
		return nil, compacted(&b)
	}
	again := &Branch{Identity: o.Identity, File: o.File, reader: o.reader}
	at := pointAt(o.At)
	at.epoch = o.Epoch
	return again, again.settle(at)
}

// settle fills in what depends on where history begins by now.
func (o *Branch) settle(at point) error {
	r := o.reader
	h, err := r.readSlots()
	if err != nil {
		return err
	}
	begin := r.oldest()
	b := bounds{begin: begin, stop: at, proven: at.end}
	if at.epoch == 0 && at.end > begin.end {
		if at.epoch, err = r.epochAt(at); err != nil {
			return err
		}
	}
	o.At, o.Epoch = at.place(), at.epoch
	o.Slot = frame.Slot{Durable: o.At, Floor: begin.place(), Generation: 1}
	c, err := lastCheckpoint(r, h, &b)
	if err != nil {
		return err
	}
	if o.Slot.Features, err = r.beyondSlots(h, at, &c); err != nil {
		return err
	}
	if c.last.end > begin.end && c.last.group.Offset >= begin.end && c.above(begin.end) {
		o.Slot.Check = c.last.group
		return nil
	}
	return o.carry(&c, h, &b)
}

// above reports whether all that the checkpoint leads to lies at or behind off.
func (c *checkpoints) above(off int64) bool {
	return c.runsAbove(off) && (c.blob.Offset == 0 || c.blob.Offset >= off)
}

func (c *checkpoints) runsAbove(off int64) bool {
	for i := range c.index.Runs {
		for _, x := range c.index.Runs[i].Extents {
			if x.Offset < off {
				return false
			}
		}
	}
	return true
}

// carry sees to the host's state where no checkpoint below the boundary leads
// to it: retention wrote it again further on. c is the last checkpoint below
// the boundary.
func (o *Branch) carry(c *checkpoints, h *header, b *bounds) error {
	r := o.reader
	if c.blob.Offset >= b.begin.end && c.blob.Offset != 0 {
		return o.takeBlob(c.blob, b)
	}
	if b.begin.rev == r.id.Base.Revision { // nothing was dropped, so there is none
		return nil
	}
	now, err := r.bounds()
	if err != nil {
		return err
	}
	head, err := lastCheckpoint(r, h, &now)
	switch {
	case err != nil:
		return err
	case head.blob.Offset == 0:
		return nil
	case head.blob.Revision > o.At.Revision:
		return fmt.Errorf("the host's state at or before revision %d was dropped, the oldest one left is of revision %d: %w",
			o.At.Revision, head.blob.Revision, compacted(b))
	}
	return o.takeBlob(head.blob, &now)
}

func (o *Branch) takeBlob(p frame.Place, b *bounds) error {
	_, data, err := o.reader.readBlob(p, b)
	o.state, o.data = p, data
	return err
}

// epochAt returns the epoch of the group that ends at a point.
func (r *Reader) epochAt(at point) (uint64, error) {
	w := walker{geo: r.geo, win: window{r: r.file, limit: at.end, chunk: frame.MinPageSize}}
	start, err := r.firstStartBefore(&w.win, at.end)
	if err != nil {
		return 0, err
	}
	if start == 0 {
		start = r.geo.Start(r.oldest().end)
	}
	for err = w.trust(start); err == nil && w.at.end < at.end; {
		err = w.next()
	}
	var f *fault
	if errors.As(err, &f) {
		return 0, f.located(r.geo, at)
	}
	return w.at.epoch, err
}

// beyondSlots returns the features of the history up to a point: what the newest
// slot says, and what commits brought that it does not know of yet. c becomes
// the last checkpoint among those groups, if there is one.
func (r *Reader) beyondSlots(h *header, at point, c *checkpoints) (frame.Features, error) {
	s := h.newest()
	if s == nil {
		return frame.Features{Compat: frame.FeatureKeys}, nil // it may have keys
	}
	f := s.Features
	w := walker{geo: r.geo, win: window{r: r.file, limit: at.end, chunk: 64 << 10}, at: pointAt(s.Durable)}
	for w.at.end < at.end {
		if err := w.next(); err != nil {
			f.Compat |= frame.FeatureKeys // damage that is bridged: what it hid is not known
			return f, notFault(err)
		}
		if w.cur.Derived() {
			c.passed(&w.cur)
		} else if hasKeys(w.cur.body) {
			f.Compat |= frame.FeatureKeys
		}
	}
	return f, nil
}

// Begin makes f, which holds the new log up to the boundary, a log in
// operation: it opens it as a writer does, in the directory of env, and commits
// payload as the record of kind frame.KindFork. The log in f is durable on
// return and not yet published; f stays open. It returns the first commit.
func (o *Branch) Begin(ctx context.Context, env Env, f disk.File, payload []byte) (Commit, error) {
	env = env.withDefaults()
	env.Dir, env.Idle = undirected{env.Dir}, -1
	l, err := openLocked(env, unclosed{f}, Options{ZeroAhead: ZeroAheadOff, MaxUnsynced: defaultMaxUnsynced, CheckpointEvery: -1}, disk.FileSystem{})
	if err != nil {
		return Commit{}, fmt.Errorf("open the new log: %w", err)
	}
	if l.report.End != o.At.Offset || l.report.Torn != 0 {
		err := fmt.Errorf("%w: the new log ends at offset %d, not %d", ErrCorrupt, l.report.End, o.At.Offset)
		return Commit{}, errors.Join(err, l.Close())
	}
	var b Batch
	b.add(frame.KindFork, 0, frame.Plain, payload)
	c, err := l.commitOver(ctx, &b)
	switch {
	case err != nil:
	case o.data != nil:
		err = l.Checkpoint(ctx, o.state.Revision, o.data)
	case l.slots.cur.Floor.Offset > l.geo.HeaderArea(): // say it where it is found without slots, too
		err = l.Checkpoint(ctx, c.Revision, nil)
	}
	return c, errors.Join(err, l.Close())
}

// commitOver commits what the log's own limits may be too small for.
func (l *Log) commitOver(ctx context.Context, b *Batch) (Commit, error) {
	id := *l.id
	id.MaxRecord, id.MaxGroup, id.MaxSize = frame.MaxRecordBytes, frame.MaxGroupBytes, 0
	l.id = &id
	return l.Commit(ctx, b)
}

// undirected is a directory that a log may use and does not own.
type undirected struct{ disk.Dir }

func (undirected) Close() error { return nil }

// PublishIn makes a file of what fill writes and gives it its name in one step,
// never replacing: a crash leaves nothing under the name, or a whole file. fill
// gets the file locked, under a name of its own.
func PublishIn(env Env, name string, fill func(f disk.File) error) error {
	s := spot{env: env.withDefaults(), name: name, path: name}
	return s.publish(fill)
}

// DrawIdentity fills in what a new log draws at random: ID, salt and the key of
// its index, and the time it was made.
func DrawIdentity(id *frame.Identity, env Env) error { return draw(id, env.withDefaults()) }

// WriteHeaderArea writes the header area of a new log, both slots alike.
func WriteHeaderArea(f disk.File, id *frame.Identity, slot frame.Slot) error {
	return noSpaceOr(writeHeaderArea(f, id, slot))
}

// Prove checks every byte of the log in f, which ends at at.
func Prove(ctx context.Context, f disk.File, at frame.Place) error {
	return proveNew(ctx, f, pointAt(at))
}

// AdmitIn refuses directories on network and user-space file systems, unless
// any is allowed, and names that are taken.
func AdmitIn(env Env, name string, anyFileSystem bool) error {
	s := spot{env: env.withDefaults(), name: name, path: name}
	return s.vacant(anyFileSystem)
}

// moved reports whether an error in reading may come from retention, which has
// moved the floor since b was taken; b is then what is left.
func (r *Reader) moved(b *bounds, err error) bool {
	if err == nil || !errors.Is(err, ErrCorrupt) && !errors.Is(err, io.EOF) {
		return false
	}
	fresh, again := r.bounds()
	if again != nil || fresh.begin.end <= b.begin.end {
		return false
	}
	*b = fresh
	return true
}
