package pagelog

import (
	"fmt"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// slots writes the two slots of an open log and knows what of them is on disk.
//
// Invariants:
//
//   - A slot names durable bytes only.
//   - One of the two slots is always on disk: a write goes over the slot whose
//     last write is not known to be synced, if there is one, else over the
//     older. A write counts as synced by a sync that was issued after it
//     returned.
//
// It belongs to whoever holds the log's syncing role.
type slots struct {
	file disk.File
	geo  *frame.Geometry
	cur  frame.Slot // the last one written
	disk [2]struct {
		number uint64
		synced bool
	}
	now    func() int64
	fenced *incarnation // asked before each write; nil: the log belongs to no run
}

// open writes the first slot of this incarnation: over one that does not hold,
// else over the newest, so that the other one stays on disk. It names floor,
// the proven end, and not what recovery found above it.
func (s *slots) open(f disk.File, h *header, epoch uint64, floor frame.Place) error {
	s.file, s.geo = f, h.geo
	writer, now, run, fence := s.cur.Writer, s.now, s.cur.Run, s.cur.Fence
	if newest := h.newest(); newest != nil {
		compat := s.cur.Features.Compat // of what was found behind what that slot names
		s.cur = *newest
		s.cur.Features.Compat |= compat
	} else {
		s.cur = frame.Slot{
			Floor: h.begin().place(), Check: s.cur.Check, Features: s.cur.Features,
			Generation: max(h.lost.generation, 1),
		}
	}
	s.cur.Run, s.cur.Fence = run, fence
	s.cur.Superseded = 0 // this file is the log: its name leads here
	s.now = now
	s.cur.Writer, s.cur.Epoch, s.cur.Durable = writer, epoch, floor
	target := 0
	for i := range h.slots {
		s.disk[i].number, s.disk[i].synced = h.slots[i].Number, true
		if h.slots[i].err != nil {
			s.disk[i].number = 0
		}
	}
	if s.disk[1].number > s.disk[0].number {
		target = 1
	}
	for i := range h.slots {
		if h.slots[i].err != nil {
			target = i
		}
	}
	return s.put(target)
}

// name writes a slot that says bytes are durable up to p.
func (s *slots) name(p frame.Place) error {
	s.cur.Durable = p
	return s.write()
}

// write writes the current slot where it may go.
func (s *slots) write() error {
	target := 0
	switch a, b := s.disk[0], s.disk[1]; {
	case !a.synced:
	case !b.synced, b.number < a.number:
		target = 1
	}
	return s.put(target)
}

func (s *slots) put(target int) error {
	if err := s.fenced.mayAcknowledge(); err != nil {
		return err
	}
	s.cur.Number++
	s.cur.Time = s.now()
	var b [frame.SlotSize]byte
	s.geo.PutSlot(b[:], frame.SlotOffsets[target], &s.cur)
	if _, err := s.file.WriteAt(b[:], frame.SlotOffsets[target]); err != nil {
		s.disk[target].number, s.disk[target].synced = 0, false // whatever is there: the next one goes there, too
		return fmt.Errorf("write slot %d: %w", target, err)
	}
	s.disk[target].number, s.disk[target].synced = s.cur.Number, false
	return nil
}

// synced records that a sync, issued when no slot write was under way, returned
// nil.
func (s *slots) synced() {
	s.disk[0].synced, s.disk[1].synced = true, true
}

func (s *slots) allSynced() bool { return s.disk[0].synced && s.disk[1].synced }
