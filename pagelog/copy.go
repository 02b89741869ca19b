package pagelog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// CopyOptions is how a log is copied. The zero value is a good choice.
type CopyOptions struct {
	// Progress, if set, is told how many bytes are copied, of how many. It is
	// called by the goroutine that called Copy; done never falls and ends at
	// total.
	Progress func(done, total int64)
	// AllowAnyFileSystem accepts network and user-space file systems.
	AllowAnyFileSystem bool
}

// CopyReport says what was copied.
type CopyReport struct {
	LogID  cursor.LogID  `json:"log_id"`
	Head   uint64        `json:"head"`        // revision of the copy's last commit
	Digest cursor.Digest `json:"digest"`      // of that commit
	End    int64         `json:"durable_end"` // offset where the copy's history ends
	Bytes  int64         `json:"bytes"`       // bytes written; the rest of the file is holes
}

// Copy makes a copy of the log at path, which may be written meanwhile, up to
// its durable end: a log with the same ID and, up to there, the same bytes. Its
// slots are its own. Zeros become holes. Every byte of the copy is checked
// before the copy gets its name, which it does in one step, never replacing: a
// crash leaves no copy, or a whole one.
//
// What follows the durable end in the old log is not in the copy, and what is
// written to the copy is not in the old log: both continue the same history
// under the same ID. Keep one of them for reading.
//
// Errors: fs.ErrExist, ErrCorrupt for a damaged log (see Salvage), ErrNotALog,
// ErrUnsupported, ErrReplaced, ErrNoSpace, ErrFileSystem, fs.ErrNotExist, the
// context's, and what the file system says.
func Copy(ctx context.Context, path, newPath string, o CopyOptions) (CopyReport, error) {
	var report CopyReport
	err := between(path, newPath, func(from, to spot) (err error) {
		report, err = copyLog(ctx, from, to, o)
		return err
	})
	return report, err
}

func copyLog(ctx context.Context, from, to spot, o CopyOptions) (CopyReport, error) {
	if err := to.vacant(o.AllowAnyFileSystem); err != nil {
		return CopyReport{}, err
	}
	f, err := from.open(o.AllowAnyFileSystem)
	if err != nil {
		return CopyReport{}, err
	}
	c := copier{from: from, src: f, r: ctxReader{ctx, f}, progress: progress{tell: o.Progress}}
	err = from.fail(c.findEnd())
	if err == nil {
		err = to.publish(func(out disk.File) error { return c.fill(ctx, out) })
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return CopyReport{}, err
	}
	c.progress.finish(c.end.end)
	return c.report, nil
}

// copier is the state of one copy.
type copier struct {
	from     spot
	src      disk.File
	r        io.ReaderAt // src, ended by the context
	head     *header
	end      point // the durable end: where the copy ends
	features frame.Features
	newer    checkpoints // the last one before end that no slot names yet
	progress progress
	report   CopyReport
}

// findEnd finds the last group that slots and later headers prove durable, as
// a durable reader does.
func (c *copier) findEnd() error {
	h, err := readSteady(c.src)
	if err == nil {
		err = h.mayRead()
	}
	if err != nil {
		return err
	}
	c.head = h
	r := &Reader{file: unclosed{c.src}, id: &h.id, geo: h.geo, opts: ReaderOptions{Durable: true}, begin: h.begin()}
	own := *h // the reader reads it again
	r.view.header = &own
	b, err := r.bounds()
	if err != nil {
		return err
	}
	if own.newest() == nil && b.stop.end == h.geo.HeaderArea() {
		return &CorruptError{Offset: frame.SlotOffsetA, Revision: 1, What: "both slots are damaged and nothing proves a commit durable", Err: h.slots[0].err}
	}
	c.end = b.stop
	if c.features, err = r.beyondSlots(&own, c.end, &c.newer); err != nil {
		return err
	}
	c.report = CopyReport{LogID: h.id.LogID, Head: c.end.rev, Digest: cursor.Digest(c.end.digest), End: c.end.end}
	return b.damage
}

// unclosed is a file that a reader may use and does not own.
type unclosed struct{ disk.File }

func (unclosed) Close() error { return nil }

// fill writes the copy.
func (c *copier) fill(ctx context.Context, out disk.File) error {
	begin := c.head.begin()
	from := max(c.head.geo.PageStart(begin.end), c.head.geo.HeaderArea())
	if err := c.copyBytes(out, from); err != nil {
		return err
	}
	// Retention may have dropped more meanwhile, and freed it under our hands.
	now := *c.head
	if err := now.reread(c.src); err != nil {
		return err
	}
	if floor := now.begin(); floor.end > begin.end {
		if floor.end > c.end.end {
			return fmt.Errorf("%w: all that was to be copied was dropped by retention; copy it again", ErrReplaced)
		}
		begin = floor
	}
	if err := noSpaceOr(writeHeaderArea(out, &c.head.id, c.slot(begin))); err != nil {
		return err
	}
	return c.from.fail(proveNew(ctx, out, c.end)) // the bytes are the source's, and so is their damage
}

// copyBytes copies from from on up to the durable end. Runs of zeros that fill
// a piece are left out.
func (c *copier) copyBytes(out disk.File, from int64) error {
	if err := out.Truncate(c.end.end); err != nil {
		return noSpaceOr(err)
	}
	buf := make([]byte, zeroChunk)
	for off := from; off < c.end.end; {
		b := buf[:min(int64(len(buf))-off%int64(len(buf)), c.end.end-off)]
		n, err := c.r.ReadAt(b, off)
		if n < len(b) {
			if err == nil || errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w while it was copied", ErrReplaced)
			}
			return fmt.Errorf("read at offset %d: %w", off+int64(n), err)
		}
		if !frame.IsZero(b) {
			if _, err := out.WriteAt(b, off); err != nil {
				return noSpaceOr(err)
			}
			c.report.Bytes += int64(len(b))
		}
		off += int64(len(b))
		c.progress.at(off, c.end.end)
	}
	return nil
}

// slot returns what the copy's slots say: what the source's do, up to the end
// of the copy.
func (c *copier) slot(begin point) frame.Slot {
	s := frame.Slot{Epoch: max(c.end.epoch, 1), Generation: 1}
	if newest := c.head.newest(); newest != nil {
		s = *newest
		s.Epoch = max(s.Epoch, c.end.epoch)
	}
	s.Durable, s.Floor, s.Superseded, s.Features = c.end.place(), begin.place(), 0, c.features
	if c.newer.last.end != 0 {
		s.Before, s.Check = s.Check, c.newer.last.group
	}
	if s.Before.Offset < begin.end {
		s.Before = frame.Place{}
	}
	if s.Check.Offset < begin.end {
		s.Check, s.Before = s.Before, frame.Place{}
	}
	return s
}
