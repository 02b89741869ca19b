package pagelog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// checkHeader checks every byte of the header area but what the slots say of
// places, which the walk confirms.
func (v *verifier) checkHeader() error {
	area := make([]byte, v.geo.HeaderArea())
	if _, err := v.r.ReadAt(area, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read header area: %w", err)
	}
	v.checkIdentity(area)
	v.checkSlots()
	const slotA, slotB = frame.SlotOffsetA + frame.SlotSize, frame.SlotOffsetB + frame.SlotSize
	unused := [][2]int64{
		{slotA, frame.SlotOffsetB},
		{slotB, frame.IdentityCopyOffset},
		{frame.IdentityCopyOffset + frame.IdentitySize, v.geo.HeaderArea()},
	}
	for _, u := range unused {
		part := area[u[0]:u[1]]
		if i := len(part) - len(bytes.TrimLeft(part, "\x00")); i < len(part) {
			v.add(ClassCorrupt, "header area", frame.ErrPadding.Error(), u[0]+int64(i), 0)
		}
	}
	return v.checkFloorPage()
}

func (v *verifier) checkIdentity(area []byte) {
	copies := [2][]byte{area[frame.IdentityOffset:], area[frame.IdentityCopyOffset:]}
	offsets := [2]int64{frame.IdentityOffset, frame.IdentityCopyOffset}
	for i, err := range v.head.badIdentity {
		if err != nil {
			v.add(ClassNote, "identity", fmt.Sprintf("copy %d: %v; the other copy holds", i, err), offsets[i], 0)
			return
		}
	}
	if !bytes.Equal(copies[0][:frame.IdentitySize], copies[1][:frame.IdentitySize]) {
		v.add(ClassCorrupt, "identity", "both copies hold, and they differ", frame.IdentityCopyOffset, 0)
	}
}

func (v *verifier) checkSlots() {
	class, more := ClassNote, "; the other slot holds"
	if v.head.newest() == nil {
		class, more = ClassCorrupt, "; no slot holds"
	}
	for i := range v.head.slots {
		if err := v.head.slots[i].err; err != nil {
			v.add(class, "slot", fmt.Sprintf("slot %d: %v%s", i, err, more), frame.SlotOffsets[i], 0)
		}
	}
}

// checkFloorPage checks the header of the page in which the retention floor
// lies: no group below the floor is checked, but readers look for the floor by
// it.
func (v *verifier) checkFloorPage() error {
	begin := v.head.begin()
	v.report.Dropped = begin.end - v.geo.HeaderArea()
	page := v.geo.PageStart(begin.end)
	if page < v.geo.HeaderArea() || page == begin.end {
		return nil
	}
	var b [frame.PageHeaderSize]byte
	n, err := v.r.ReadAt(b[:], page)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read at offset %d: %w", page, err)
	}
	if _, err := v.geo.DecodePage(b[:n], page); err != nil {
		v.add(ClassCorrupt, "page header", err.Error(), page, begin.rev+1)
	}
	return nil
}

// mark is a place that a slot names, to be held against the groups.
type mark struct {
	slot    int
	name    string
	isStart bool // of a derived group, whose revision and digest are named; else the end of a group
	place   frame.Place
	seen    bool
	wrong   bool
	over    bool        // it lies in a stretch that was bridged
	got     frame.Place // what the groups say instead, if wrong
}

// marks lists what the slots name and lies in the part of history the file
// still has.
func (h *header) marks() []mark {
	var list []mark
	begin := h.begin()
	for i := range h.slots {
		s := &h.slots[i]
		if s.err != nil {
			continue
		}
		for _, m := range []mark{
			{name: "durable end", place: s.Durable},
			{name: "floor", place: s.Floor},
			{name: "checkpoint", place: s.Check, isStart: true},
			{name: "earlier checkpoint", place: s.Before, isStart: true},
		} {
			m.slot = i
			if m.place.Offset < begin.end {
				continue
			}
			if !m.isStart && m.place.Offset == begin.end {
				m.seen, m.got = true, begin.place()
				m.wrong = m.place != m.got
			}
			list = append(list, m)
		}
	}
	return list
}

// look holds a mark against a group that was passed; at is the point behind it.
func (m *mark) look(p *passed, at point) {
	off := m.place.Offset
	switch {
	case m.seen:
	case m.isStart && p.start == off:
		m.seen, m.got = true, frame.Place{Offset: off, Revision: p.Revision, Digest: p.Digest}
		m.wrong = !p.Derived() || m.got != m.place
	case !m.isStart && p.before.end < off && off <= at.end:
		m.seen, m.got = true, at.place()
		m.wrong = m.got != m.place
	}
}

// bridged holds a mark against derived damage that was stepped over, from from
// to at.
func (m *mark) bridged(from int64, at point) {
	switch {
	case m.isStart:
		m.over = m.over || m.place.Offset >= from && m.place.Offset < at.end
	case !m.seen:
		m.seen = m.place == at.place()
	}
}

// checkMarks reports what the slots say and the groups do not.
func (v *verifier) checkMarks() {
	for i := range v.marks {
		m := &v.marks[i]
		structure := "slot"
		if m.isStart {
			structure = "checkpoint"
		}
		said := fmt.Sprintf("slot %d names as %s offset %d, revision %d, digest %v",
			m.slot, m.name, m.place.Offset, m.place.Revision, cursor.Digest(m.place.Digest))
		switch {
		case m.wrong:
			v.add(ClassCorrupt, structure, fmt.Sprintf("%s; the groups give offset %d, revision %d, digest %v",
				said, m.got.Offset, m.got.Revision, cursor.Digest(m.got.Digest)), frame.SlotOffsets[m.slot], m.place.Revision)
		case m.isStart && !m.seen && m.over:
			v.add(ClassBridged, structure, said+"; it lies in damaged derived bytes", frame.SlotOffsets[m.slot], m.place.Revision)
		case m.isStart && !m.seen:
			v.add(ClassCorrupt, structure, said+"; no group that holds begins there", frame.SlotOffsets[m.slot], m.place.Revision)
		}
	}
}
