package pagelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// Checkpoints. A checkpoint is a derived group in the stream of groups: it is
// written with the commits beside it, so it costs no flush, and a slot names it
// once it is durable. It repeats what the slots hold, points to the checkpoint
// before it and to the host's last blob. Losing one changes cost, never
// content.

// blob is a host's state at a commit.
type blob struct {
	data []byte      // nil: a checkpoint is asked for, and no state is given
	at   frame.Place // revision and digest of the commit; the offset is filled in when it is written
}

// made is a checkpoint that was written.
type made struct {
	group frame.Place // start, revision and digest of its group
	end   int64       // raw end of its group
	blob  frame.Place // the host's last blob, as it says
	floor frame.Place // it is no checkpoint, but moves the retention floor; offset 0: it does not
}

// checkpoints is what the next checkpoint must know. It belongs to the writing
// role, and is copied and adopted with the write that it was part of.
type checkpoints struct {
	over bool        // one of the write under way is over the bound of a group: it is rejected
	last made        // zero: there is none
	from point       // where history stood at the last one, or begins
	size int64       // bytes of the last one
	blob frame.Place // the host's last blob; zero: there is none
	made []made      // by the write under way

	floor frame.Place // retention floor, as the next checkpoint says; the slots follow

	index    checkpoint.Index // as the last one lists it
	features frame.Features   // as the last one has them
	fence    Fence            // likewise
}

// checkpointCommits is how many commits call for a checkpoint, however small.
const checkpointCommits = 1024

// due reports whether a checkpoint should follow head.
func (c *checkpoints) due(head point, every int64) bool {
	if every < 0 {
		return false
	}
	bytes, commits := head.end-c.from.end, head.rev-c.from.rev
	return commits > 0 && (bytes >= every || commits >= checkpointCommits) && bytes >= 4*c.size
}

// passed takes note of a derived group that a walk went over.
func (c *checkpoints) passed(p *passed) {
	for record := range frame.Records(p.body) {
		if record.Kind == frame.KindFloor {
			if f, err := checkpoint.DecodeFloor(record.Data); err == nil {
				c.floor = f.Place
			}
		}
		if record.Kind != frame.KindCheckpoint {
			return
		}
		cp, err := checkpoint.Decode(record.Data)
		if err != nil {
			return
		}
		c.adopt(&cp, p.start, p.end, &p.GroupHeader)
		return
	}
}

func (c *checkpoints) adopt(cp *checkpoint.Checkpoint, start, end int64, h *frame.GroupHeader) {
	c.last = made{frame.Place{Offset: start, Revision: h.Revision, Digest: h.Digest}, end, cp.Blob, frame.Place{}}
	c.from = point{end: end, rev: h.Revision}
	c.size, c.blob = end-start, cp.Blob
	c.index, c.features, c.floor = cp.Index, cp.Features, cp.Floor
	c.fence = Fence{cp.Run, cp.Fence}
}

// addCheckpoint lays out a checkpoint behind head, and before it the keys that
// no run holds yet.
func (l *Log) addCheckpoint(c *checkpoints, head point, b *blob, now int64) point {
	if err := l.indexer.flush(l.index, l.placeIn(&head, now)); err != nil {
		panic("internal error: laying out a piece failed: " + err.Error())
	}
	l.indexer.credit++ // so that merges go on where no keys are added
	cp := checkpoint.Checkpoint{
		Resume: head.place(), Previous: c.last.group, Blob: c.blob, Floor: c.floor,
		Fence: l.slots.cur.Fence, Run: l.slots.cur.Run, Generation: l.slots.cur.Generation, Features: l.features,
		Index: l.indexer.listed(l.index),
	}
	if len(l.indexer.keys) > 0 {
		cp.Features.Compat |= frame.FeatureKeys
	}
	start := l.geo.Start(head.end)
	count := uint32(1)
	if b != nil && b.data == nil {
		b = nil
	}
	if b != nil {
		cp.Blob = b.at
		cp.Blob.Offset = start
		count++
	}
	body := frame.AppendRecord(nil, frame.KindCheckpoint, 0, frame.Plain, cp.Encode())
	if b != nil {
		body = frame.AppendRecord(body, frame.KindBlob, 0, frame.Plain, b.data)
	}
	c.over = c.over || int64(len(body)) > l.geo.MaxBody()
	h := derivedHeader(head, body, count, now)
	head.last = last{start, h.Digest}
	head.end = l.builder.Add(&h, body)
	c.adopt(&cp, start, head.end, &h)
	c.made = append(c.made, c.last)
	return head
}

// nameCheckpoints puts the checkpoints that target made durable into the next
// slot and reports whether there were any. The syncing role and mu are held.
func (l *Log) nameCheckpoints(target point) bool {
	n := 0
	for _, m := range l.made {
		if m.end > target.end {
			break
		}
		if m.floor.Offset != 0 {
			l.slots.nameFloor(m.floor)
		} else {
			l.slots.cur.Before, l.slots.cur.Check = l.slots.cur.Check, m.group
			l.kept = m
		}
		n++
	}
	l.made = append(l.made[:0], l.made[n:]...)
	return n > 0
}

// Checkpoint keeps the host's state: data is what the host needs to go on from
// the commit at revision, instead of replaying everything before it. It may
// have up to 16 MiB and is copied. On return it is durable; LastCheckpoint
// hands out the last one. Nil writes a checkpoint without a state, and
// LastCheckpoint goes on to hand out the one before; an empty state is not nil.
// Errors are those of Commit, ErrNotFound and ErrCompacted.
func (l *Log) Checkpoint(ctx context.Context, revision uint64, data []byte) error {
	if len(data) > checkpoint.MaxBlob {
		return fmt.Errorf("%w: a checkpoint of %d bytes, none may have over %d", ErrTooLarge, len(data), checkpoint.MaxBlob)
	}
	digest, err := l.DigestAt(revision)
	if err != nil {
		return err
	}
	b := &blob{data: bytes.Clone(data), at: frame.Place{Revision: revision, Digest: uint64(digest)}}
	_, err = l.do(ctx, &Ticket{log: l, blob: b})
	return err
}

// LastCheckpoint returns the last state that the host kept with Checkpoint, and
// the revision whose state it is: what follows is replayed with Commits. One
// that is damaged is passed over for the one before. The error is ErrNotFound if
// there is none that holds: then all is replayed.
func (r *Reader) LastCheckpoint() (revision uint64, data []byte, err error) {
	data, err = ask(r, func(r *Reader) (data []byte, err error) {
		revision, data, err = r.lastState()
		return data, err
	})
	return revision, data, err
}

func (r *Reader) lastState() (revision uint64, data []byte, err error) {
	b, err := r.bounds()
	if err != nil {
		return 0, nil, err
	}
	checks, err := r.newestCheckpoint(&b)
	if err != nil {
		return 0, nil, err
	}
	var damage error
	for checks.blob.Offset != 0 {
		revision, data, err := r.readBlob(checks.blob, &b)
		if err == nil || !isLost(err) {
			return revision, data, err
		}
		if damage == nil {
			damage = err
		}
		if checks, err = r.blobBefore(checks, &b); err != nil {
			return 0, nil, err
		}
	}
	if damage != nil {
		return 0, nil, fmt.Errorf("%w: no checkpoint of the host holds: %w", ErrNotFound, damage)
	}
	return 0, nil, fmt.Errorf("%w: the log holds no checkpoint of the host", ErrNotFound)
}

// newestCheckpoint returns the newest checkpoint that is durable. The writer
// knows; others are told by the slots.
func (r *Reader) newestCheckpoint(b *bounds) (checkpoints, error) {
	if r.live != nil {
		r.live.mu.Lock()
		defer r.live.mu.Unlock()
		return checkpoints{last: r.live.kept, blob: r.live.kept.blob}, nil
	}
	h, err := r.readSlots()
	if err != nil {
		return checkpoints{}, err
	}
	return lastCheckpoint(r, h, b)
}

// isLost reports whether a blob cannot be read any more, and an older one has
// to do.
func isLost(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrDiverged) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrCompacted)
}

// blobBefore goes back from checkpoint to checkpoint until one points to
// another blob than c does. The zero checkpoints: there is none.
func (r *Reader) blobBefore(c checkpoints, b *bounds) (checkpoints, error) {
	lost := c.blob
	proven := min(b.proven, b.stop.end)
	cp, _, ok, err := peek(r.file, r.geo, c.last.group, proven)
	for ok && err == nil {
		p := cp.Previous
		if p.Offset == 0 || p.Offset >= c.last.group.Offset || p.Offset < b.begin.end {
			break
		}
		var end int64
		cp, end, ok, err = peek(r.file, r.geo, p, proven)
		if ok && err == nil {
			c = checkpoints{}
			c.adopt(&cp, p.Offset, end, &frame.GroupHeader{Revision: p.Revision, Digest: p.Digest})
			if c.blob != lost {
				return c, nil
			}
		}
	}
	return checkpoints{}, err
}

// readBlob reads the blob in the group that starts at p and confirms that the
// commit it belongs to is part of this history.
func (r *Reader) readBlob(p frame.Place, b *bounds) (uint64, []byte, error) {
	w := walker{geo: r.geo, win: window{r: r.file, limit: b.stop.end, chunk: frame.MinPageSize}}
	err := w.trust(p.Offset)
	if err == nil {
		err = w.next()
	}
	var f *fault
	if errors.As(err, &f) {
		return 0, nil, f.located(r.geo, point{rev: p.Revision})
	}
	if err != nil {
		return 0, nil, err
	}
	digest, err := r.digestAt(p.Revision, b)
	if err != nil {
		return 0, nil, err
	}
	if uint64(digest) != p.Digest {
		return 0, nil, fmt.Errorf("%w: the checkpoint at offset %d is of another history", ErrDiverged, p.Offset)
	}
	for record := range frame.Records(w.cur.body) {
		if record.Kind == frame.KindBlob {
			return p.Revision, append([]byte(nil), record.Data...), nil
		}
	}
	return 0, nil, fmt.Errorf("%w: no blob at offset %d", ErrNotFound, p.Offset)
}

// peek reads the header and the first record of the checkpoint group at p,
// without the host's blob. ok is false if the group is not the one p names, or
// not durable.
func peek(r io.ReaderAt, g *frame.Geometry, p frame.Place, proven int64) (cp checkpoint.Checkpoint, end int64, ok bool, err error) {
	if !g.MayStart(p.Offset) {
		return cp, 0, false, nil
	}
	var raw [frame.GroupHeaderSize]byte
	n, err := r.ReadAt(raw[:], p.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return cp, 0, false, fmt.Errorf("read at offset %d: %w", p.Offset, err)
	}
	h, err := g.DecodeGroup(raw[:n], p.Offset)
	if err != nil || !h.Derived() || h.Revision != p.Revision || h.Digest != p.Digest {
		return cp, 0, false, nil
	}
	end = g.End(p.Offset, h.Body)
	if end < 0 || end > proven {
		return cp, 0, false, nil
	}
	body := runReader{file: r, geo: g}
	record, err := body.record(p.Offset, h.Body)
	if err != nil {
		return cp, 0, false, onlyRead(err)
	}
	cp, ok = firstRecord(record)
	return cp, end, ok, nil
}

// onlyRead returns what the file system said, and nil for what is wrong with
// the bytes.
func onlyRead(err error) error {
	if errors.Is(err, errEnd) || errors.Is(err, frame.ErrField) {
		return nil
	}
	return err
}

func firstRecord(body []byte) (checkpoint.Checkpoint, bool) {
	for record := range frame.Records(body) {
		cp, err := checkpoint.Decode(record.Data)
		return cp, err == nil && record.Kind == frame.KindCheckpoint && record.Holds()
	}
	return checkpoint.Checkpoint{}, false
}

// lastCheckpoint returns the newest checkpoint that holds below b.proven: one
// that a slot names, or if those fail, the last one that the pages lead to,
// looked for backwards.
func lastCheckpoint(r *Reader, h *header, b *bounds) (checkpoints, error) {
	var c checkpoints
	named := false
	s := h.newest()
	if s == nil {
		named = true // unknown: look
		s = &frame.Slot{}
	}
	for _, p := range []frame.Place{s.Check, s.Before} {
		if p.Offset == 0 {
			continue
		}
		named = true
		cp, end, ok, err := peek(r.file, r.geo, p, min(b.proven, b.stop.end))
		if err != nil {
			return c, err
		}
		if ok {
			c.adopt(&cp, p.Offset, end, &frame.GroupHeader{Revision: p.Revision, Digest: p.Digest})
			return c, nil
		}
	}
	if !named {
		return c, nil
	}
	return r.searchCheckpoint(b)
}

// searchCheckpoint walks the pages backwards for a checkpoint.
func (r *Reader) searchCheckpoint(b *bounds) (checkpoints, error) {
	var c checkpoints
	win := window{r: r.file, limit: min(b.proven, b.stop.end), chunk: int(r.geo.PageSize())}
	for page := r.geo.Page(win.limit - 1); page >= r.geo.Page(b.begin.end); page-- {
		h, ok, err := r.page(&win, page)
		if err != nil {
			return c, err
		}
		if !ok || h.First == 0 {
			continue
		}
		start := page*r.geo.PageSize() + int64(h.First)
		for start < win.limit && r.geo.Page(start) == page {
			g, err := r.groupAt(&win, start)
			if err != nil {
				break // the rest of the page does not matter
			}
			if g.Derived() {
				p := frame.Place{Offset: start, Revision: g.Revision, Digest: g.Digest}
				cp, end, ok, err := peek(r.file, r.geo, p, win.limit)
				if err != nil {
					return c, err
				}
				if ok {
					c.adopt(&cp, start, end, &g)
				}
			}
			start = r.geo.Start(r.geo.End(start, g.Body))
		}
		if c.last.end != 0 {
			return c, nil
		}
	}
	return c, nil
}

// findCheckpoint completes what the walk found: if it passed no checkpoint, the
// last one lies before where it began.
func (r *recovery) findCheckpoint(at point) error {
	if r.checks.last.end == 0 || r.checks.last.end > at.end {
		reader := &Reader{file: r.file, id: &r.head.id, geo: r.head.geo, begin: r.head.begin()}
		var err error
		r.checks, err = lastCheckpoint(reader, r.head, &bounds{begin: reader.begin, stop: at, proven: r.proven})
		if err != nil {
			return err
		}
		if r.checks.last.end == 0 {
			r.checks.from = reader.begin
		}
	}
	return r.findBefore()
}

// findBefore finds the checkpoint that slots name beside the last one: the
// newest older one that a slot named and that holds.
func (r *recovery) findBefore() error {
	s := r.head.newest()
	if s == nil {
		return nil
	}
	for _, p := range []frame.Place{s.Check, s.Before} {
		if p.Offset == 0 || p.Offset >= r.checks.last.group.Offset {
			continue
		}
		_, _, ok, err := peek(r.file, r.head.geo, p, r.proven)
		if err != nil {
			return err
		}
		if ok {
			r.before = p
			return nil
		}
	}
	return nil
}
