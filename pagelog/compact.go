package pagelog

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// Compaction writes a log again, into a file of its own: the commits as they
// are, without the hole that retention left and without the derived groups that
// nothing needs any more. Log ID, revisions and digests stay, offsets do not;
// the file has a generation of its own.
//
// Only who holds the log's lock compacts it. The order:
//
//  1. A temporary file, locked, takes the commits, the index and a checkpoint
//     with the host's last blob, and is synced.
//  2. The old file is marked as superseded by the new generation, and synced.
//  3. The new file takes the name, replacing the old one; the directory is
//     synced.
//
// The mark counts only if the name leads to another file of that generation:
// then readers go over to it, by revision and digest. After a crash between 2
// and 3 the name leads to the old file still, readers stay, and the next writer
// clears the mark.

// CompactOptions is how a log is compacted.
type CompactOptions struct {
	// Progress, if set, is told how many bytes of the old file are done.
	Progress func(done, total int64)
	// AllowAnyFileSystem accepts network and user-space file systems.
	AllowAnyFileSystem bool
}

// CompactReport says what compacting did.
type CompactReport struct {
	LogID      cursor.LogID  `json:"log_id"`
	Head       uint64        `json:"head"`
	Digest     cursor.Digest `json:"digest"`
	Oldest     uint64        `json:"oldest"`
	Generation uint64        `json:"generation"` // of the new file
	Before     int64         `json:"before"`     // bytes up to the end of the old file's history
	After      int64         `json:"after"`      // likewise of the new file
}

// Compact writes the log at path again, into a smaller file of the same name. It
// takes the log's lock, so the log must not be open for writing; readers go
// over to the new file by themselves and lose nothing. A crash leaves the old
// file or the new one, each with all commits.
//
// Errors are those of Open, ErrNoSpace, the context's, and what the file system
// says. After any of them the log is as it was.
func Compact(ctx context.Context, path string, o CompactOptions) (CompactReport, error) {
	var report CompactReport
	err := inDir(path, func(env Env, name string) (err error) {
		if report, err = CompactIn(ctx, env, name, o); err == nil {
			err = env.Dir.Close()
		}
		return err
	})
	return report, err
}

// CompactIn is Compact in a given world; see Env. The directory stays open.
func CompactIn(ctx context.Context, env Env, name string, o CompactOptions) (CompactReport, error) {
	env = env.withDefaults()
	env.Dir, env.Idle = undirected{env.Dir}, -1
	if err := sweep(env.Dir, name); err != nil {
		return CompactReport{}, err
	}
	l, err := OpenIn(env, name, Options{CheckpointEvery: -1, AllowAnyFileSystem: o.AllowAnyFileSystem, keepFence: true})
	if err != nil {
		return CompactReport{}, err
	}
	c := &compactor{ctx: ctx, env: env, old: l, progress: progress{tell: o.Progress}}
	err = c.run(name)
	return c.report, errors.Join(err, l.Close())
}

// compactor is the state of one compaction.
type compactor struct {
	ctx      context.Context
	env      Env
	old      *Log
	progress progress
	report   CompactReport

	id      frame.Identity // of the new file; its lineage as far as it is passed
	left    []frame.Ancestor
	build   *frame.Builder
	out     forward
	at      point // end of the new file so far
	written int64 // raw end of what is written
}

// run makes the new file and gives it the name.
func (c *compactor) run(name string) error {
	f, temp, err := createTemp(c.env, name)
	if err != nil {
		return noSpace("create a temporary file", err)
	}
	err = c.fill(f)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(noSpaceOr(err), f.Close(), c.env.Dir.Remove(temp))
	}
	if err := c.supersede(f, name); err != nil {
		return errors.Join(err, f.Close(), c.env.Dir.Remove(temp))
	}
	err = c.env.Dir.Sync()
	if err != nil {
		err = fmt.Errorf("sync the directory: %w", err)
	}
	return errors.Join(err, f.Close())
}

// supersede marks the old file and gives its name to the new one. If that fails
// the mark is taken back.
func (c *compactor) supersede(f disk.File, name string) error {
	s := &c.old.slots
	s.cur.Superseded = c.report.Generation
	err := s.name(c.old.durable.place())
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		c.old.mu.Lock()
		defer c.old.mu.Unlock()
		c.old.poison(err) // the old file is not known to be as memory has it
		return fmt.Errorf("mark the old file: %w", err)
	}
	s.synced()
	if err := c.env.Dir.Replace(f, name); err != nil {
		s.cur.Superseded = 0
		c.old.named = 0 // closing writes a slot
		return err
	}
	return nil
}

// fill writes the new file.
func (c *compactor) fill(f disk.File) error {
	old := c.old
	c.id = *old.id
	c.id.Lineage, c.left = nil, old.id.Lineage
	c.out = forward{f: f}
	begin := old.oldest()
	c.at = point{end: old.geo.HeaderArea(), rev: begin.rev, digest: begin.digest}
	c.written = c.at.end
	for i := 0; len(c.left) > 0 && c.left[0].Revision <= begin.rev; i++ {
		end := c.at.end
		if i > 0 { // none of the fork's own bytes is theirs any more, but ends must ascend
			end += frame.PageHeaderSize + int64(8*i)
		}
		c.leave(end)
	}
	c.salted()
	if err := c.commits(begin); err != nil {
		return err
	}
	slot := old.slots.cur
	slot.Durable, slot.Check, slot.Before, slot.Superseded = c.at.place(), frame.Place{}, frame.Place{}, 0
	slot.Floor = frame.Place{Offset: old.geo.HeaderArea(), Revision: begin.rev, Digest: begin.digest}
	slot.Epoch, slot.Features = max(slot.Epoch, c.at.epoch), old.features
	slot.Generation++
	c.id.Salt = old.id.Salt
	if err := noSpaceOr(writeHeaderArea(f, &c.id, slot)); err != nil {
		return err
	}
	c.report = CompactReport{
		LogID: c.id.LogID, Head: c.at.rev, Digest: cursor.Digest(c.at.digest), Oldest: begin.rev + 1, Generation: slot.Generation, Before: old.head.end,
	}
	if err := proveNew(c.ctx, f, c.at); err != nil {
		return err
	}
	return c.begin(f)
}

// leave says where the next ancestor's part ends in the new file.
func (c *compactor) leave(end int64) {
	a := c.left[0]
	a.End = end
	c.id.Lineage, c.left = append(c.id.Lineage, a), c.left[1:]
}

// salted makes the builder seed what follows with the salt of whose it is.
func (c *compactor) salted() {
	c.id.Salt = c.old.id.Salt
	if len(c.left) > 0 {
		c.id.Salt = c.left[0].Salt
	}
	c.build = frame.NewBuilder(c.id.Geometry())
	c.build.Reset(c.at.end, c.at.rev)
}

// commits copies the commits, in writes that begin and end like those of a
// writer. What a header calls durable is what was written before it.
func (c *compactor) commits(begin point) error {
	old := c.old
	w := walker{geo: old.geo, win: window{r: ctxReader{c.ctx, old.file}, limit: old.durable.end, chunk: readChunk}, at: begin}
	c.build.Reset(c.at.end, c.at.rev)
	for w.at.end < old.durable.end {
		err := w.next()
		var f *fault
		if errors.As(err, &f) {
			return f.located(old.geo, w.at)
		}
		if err != nil {
			return err
		}
		if w.cur.Derived() {
			continue
		}
		h := w.cur.GroupHeader
		c.at = point{end: c.build.Add(&h, w.cur.body), rev: h.Revision, digest: h.Digest, epoch: h.Epoch}
		last := len(c.left) > 0 && c.left[0].Revision == h.Revision
		if last || c.at.end-c.written >= readChunk {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if last {
			c.leave(c.at.end)
			c.salted()
		}
		c.progress.at(w.at.end, old.durable.end)
	}
	if err := c.flush(); err != nil {
		return err
	}
	return c.out.flush()
}

// flush hands what was laid out to the file.
func (c *compactor) flush() error {
	c.build.Seal(c.written)
	if err := c.out.put(c.build.Bytes(), c.build.Offset()); err != nil {
		return err
	}
	c.written = c.at.end
	c.build.Reset(c.at.end, c.at.rev)
	return nil
}

// begin opens the new file as a writer does, and gives it what the old one had
// beside its commits: the index and the host's last state.
func (c *compactor) begin(f disk.File) error {
	l, err := openLocked(c.env, unclosed{f}, Options{ZeroAhead: ZeroAheadOff, MaxUnsynced: defaultMaxUnsynced, CheckpointEvery: -1, keepFence: true}, disk.FileSystem{})
	if err != nil {
		return fmt.Errorf("open the new file: %w", err)
	}
	id := *l.id
	id.MaxSize = 0 // the old file may have been over it with what is needed no more
	l.id = &id
	err = c.index(l)
	if err == nil {
		err = c.state(l)
	}
	c.report.After = l.head.end
	return errors.Join(err, l.Close())
}

// index builds the keyed index in the new file, and takes over from the old one
// what it says of commits that were dropped.
func (c *compactor) index(l *Log) error {
	if l.features.Compat&frame.FeatureKeys == 0 {
		return nil
	}
	l.reindexing.Lock()
	defer l.reindexing.Unlock()
	b := rebuild{log: l, ctx: c.ctx}
	head := b.begin()
	defer b.end()
	if err := c.dropped(&b, l.oldest().rev); err != nil {
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

// dropped takes over the keys of dropped commits, as far as the old index can
// be read: where not, a key that is not found is ErrCompacted from then on.
func (c *compactor) dropped(b *rebuild, floor uint64) error {
	if floor <= c.old.id.Base.Revision {
		return nil
	}
	x := c.old.index
	b.lv.since = x.lv.since
	reader := runReader{file: c.old.file, geo: c.old.geo}
	for _, e := range x.table.entries {
		if e.Revision <= floor {
			b.keys = append(b.keys, e)
		}
	}
	var failed error
	x.lv.each(func(r *run) bool {
		s := stream{run: r}
		for {
			e, err := s.peek(&reader)
			if errors.Is(err, ErrIndexDamaged) {
				b.lv.since = floor
				return true
			}
			if err != nil || e == nil {
				failed = err
				return err == nil
			}
			if e.Revision <= floor {
				b.keys = append(b.keys, *e)
			}
			s.left = s.left[1:]
			if failed = b.settle(); failed != nil {
				return false
			}
		}
	})
	return failed
}

// state writes the checkpoint with which the new file begins, and in it the
// host's last state.
func (c *compactor) state(l *Log) error {
	revision, data, err := c.old.LastCheckpoint()
	if errors.Is(err, ErrNotFound) {
		return l.Checkpoint(c.ctx, l.Head().Revision, nil)
	}
	if err != nil {
		return err
	}
	return l.Checkpoint(c.ctx, revision, data)
}
