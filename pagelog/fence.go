package pagelog

import (
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// A log may belong to a run. Whoever hands out the right to execute the run
// numbers the holders, and each gives its number to the log it opens: a fence.
// The file records the fence in its slots, together with the epoch of the
// writer, and checkpoints repeat it. So a holder that was succeeded cannot open
// the log again, and one that is still writing, because it missed that its lock
// was lost, finds out by one read before it writes, before it acknowledges and
// before it names anything durable.

// ErrFenced says that the log belongs to another run, that a newer holder of the
// run has had it, or that another writer has taken it from this one.
var ErrFenced = errors.New("log belongs to a run and this is not its newest holder")

// Fence is the right of one holder of a run to write the run's log.
type Fence struct {
	Run   [32]byte // whose log it is, for life; not zero
	Token uint64   // larger with every holder; at least 1
}

func (f Fence) check() error {
	if (f.Run == [32]byte{}) != (f.Token == 0) {
		return fmt.Errorf("option Fence needs a run and a token, or neither")
	}
	return nil
}

// admits reports ErrFenced unless the holder of f may open a log that records
// what is given.
func (f Fence) admits(recorded Fence) error {
	switch {
	case recorded == Fence{} || f.Run == recorded.Run && f.Token >= recorded.Token:
		return nil
	case f == Fence{}:
		return fmt.Errorf("%w: open it with the token of the run's lease, or read it", ErrFenced)
	case f.Run != recorded.Run:
		return fmt.Errorf("%w: it is another run's", ErrFenced)
	}
	return fmt.Errorf("%w: token %d was recorded, this holder has %d", ErrFenced, recorded.Token, f.Token)
}

// Fence returns the fence the log is open under; zero if it belongs to no run.
func (l *Log) Fence() Fence { return l.opts.Fence }

// fence decides under which fence the log is opened. Nothing has been written.
func (l *Log) fence(r *recovery) error {
	recorded, err := r.fence()
	if err != nil {
		return err
	}
	if l.opts.keepFence {
		l.opts.Fence = Fence{}
	} else if err := l.opts.Fence.admits(recorded); err != nil {
		return err
	}
	if l.opts.Fence != (Fence{}) {
		recorded = l.opts.Fence
	}
	l.slots.cur.Run, l.slots.cur.Fence = recorded.Run, recorded.Token
	return nil
}

// fence returns what the file records. The newest slot says it; where a slot of
// the run was lost, or both, the last checkpoint may know better.
func (r *recovery) fence() (Fence, error) {
	var recorded Fence
	s := r.head.newest()
	if s != nil {
		recorded = Fence{s.Run, s.Fence}
		if recorded == (Fence{}) {
			return recorded, nil
		}
	}
	if err := r.findCheckpoint(r.walk.at); err != nil {
		return recorded, err
	}
	c := r.checks.fence
	switch {
	case r.checks.last.end == 0 || r.checks.last.group.Offset < ownFrom(&r.head.id): // none, or a parent's
	case s == nil, c.Run == recorded.Run && c.Token > recorded.Token:
		recorded = c
	}
	return recorded, nil
}

// ownFrom returns where a fork's own groups begin: its parent's run is not its.
func ownFrom(id *frame.Identity) int64 {
	if n := len(id.Lineage); n > 0 {
		return id.Lineage[n-1].End
	}
	return 0
}

// incarnation is one writer of a fenced log. It tells whether the file has gone
// over to another.
type incarnation struct {
	file   disk.File
	geo    *frame.Geometry
	epoch  uint64
	writer [16]byte
	fence  Fence
	// One for each role: nobody waits for anybody to look.
	writing, syncing []byte
}

const slotsSpan = frame.SlotOffsetB + frame.SlotSize - frame.SlotOffsetA

// watchFence begins to look for other writers, if the log belongs to a run.
func (l *Log) watchFence() {
	if l.opts.Fence == (Fence{}) {
		return
	}
	s := &l.slots.cur
	l.fenced = &incarnation{
		file: l.file, geo: l.geo, epoch: s.Epoch, writer: s.Writer, fence: l.opts.Fence,
		writing: make([]byte, slotsSpan), syncing: make([]byte, slotsSpan),
	}
	l.slots.fenced = l.fenced
}

// mayWrite reports ErrFenced if another writer has opened the file. Only the
// writing role asks.
func (i *incarnation) mayWrite() error {
	if i == nil {
		return nil
	}
	return i.look(i.writing)
}

// mayAcknowledge is mayWrite for the syncing role.
func (i *incarnation) mayAcknowledge() error {
	if i == nil {
		return nil
	}
	return i.look(i.syncing)
}

// look reads both slots with one read. A slot that does not hold says nothing:
// the other role may be writing it.
func (i *incarnation) look(b []byte) error {
	n, err := i.file.ReadAt(b, frame.SlotOffsetA)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("look for another writer: %w", err)
	}
	for _, off := range frame.SlotOffsets {
		at := min(int(off-frame.SlotOffsetA), n)
		s, err := i.geo.DecodeSlot(b[at:n], off)
		if errors.Is(err, frame.ErrUnsupported) {
			return fmt.Errorf("%w: a writer of a later version has it; this is writer %d, with token %d", ErrFenced, i.epoch, i.fence.Token)
		}
		if err != nil {
			continue
		}
		if s.Epoch > i.epoch || s.Epoch == i.epoch && s.Writer != i.writer {
			return fmt.Errorf("%w: writer %d has it, with token %d; this is writer %d, with token %d",
				ErrFenced, s.Epoch, s.Fence, i.epoch, i.fence.Token)
		}
	}
	return nil
}
