package pagelog

import (
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// header is what the header area of a file says.
type header struct {
	id          frame.Identity
	geo         *frame.Geometry
	size        int64    // of the file, when it was read
	badIdentity [2]error // per copy, nil if it holds
	slots       [2]slotRead
	lost        lostFloor // where history begins, if no slot says so
}

// slotRead is one slot as it lies in the file.
type slotRead struct {
	frame.Slot
	err error // nil if it holds
}

// readHeader reads the header area. Errors: ErrNotALog, ErrUnsupported, or
// what the file system said.
func readHeader(f disk.File) (*header, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	h := &header{size: info.Size}
	area := make([]byte, min(max(h.size, 0), frame.IdentityCopyOffset+frame.IdentitySize))
	if n, err := f.ReadAt(area, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read header area: %w", err)
	} else if n < len(area) {
		area = area[:n]
	}
	if err := h.decode(area); err != nil {
		return nil, err
	}
	if h.newest() == nil {
		return h, h.findFloor(f, h.size)
	}
	return h, nil
}

func (h *header) decode(area []byte) error {
	switch {
	case len(area) == 0:
		return fmt.Errorf("%w: the file is empty", ErrNotALog)
	case frame.IsZero(area):
		return fmt.Errorf("%w: the file begins with %d zero bytes", ErrNotALog, len(area))
	}
	if err := h.decodeIdentity(area); err != nil {
		return err
	}
	if len(area) < frame.IdentityCopyOffset+frame.IdentitySize || h.size < h.geo.HeaderArea() {
		return fmt.Errorf("%w: the file is cut off after %d bytes, inside its header area", ErrNotALog, h.size)
	}
	if bits := h.id.Features.UnknownIncompat(); bits != 0 {
		return unknownFeatures("incompatible", bits)
	}
	h.decodeSlots(area)
	return nil
}

func (h *header) decodeIdentity(area []byte) error {
	var ids [2]frame.Identity
	for i, off := range [2]int{frame.IdentityOffset, frame.IdentityCopyOffset} {
		ids[i], h.badIdentity[i] = frame.DecodeIdentity(area[min(off, len(area)):])
	}
	for i, err := range h.badIdentity {
		if err == nil {
			h.id, h.geo = ids[i], ids[i].Geometry()
			return nil
		}
	}
	for _, err := range h.badIdentity {
		if errors.Is(err, frame.ErrUnsupported) {
			return fmt.Errorf("%w: the file format is not version %d", ErrUnsupported, frame.Version)
		}
	}
	if errors.Is(h.badIdentity[0], frame.ErrMark) && errors.Is(h.badIdentity[1], frame.ErrMark) {
		return fmt.Errorf("%w: the file does not begin like one", ErrNotALog)
	}
	return fmt.Errorf("%w: both copies of its identity are damaged (%w; %w)", ErrNotALog, h.badIdentity[0], h.badIdentity[1])
}

func (h *header) decodeSlots(area []byte) {
	for i, off := range frame.SlotOffsets {
		h.slots[i].Slot, h.slots[i].err = h.geo.DecodeSlot(area[off:], off)
	}
}

// reread reads size and slots again; the identity never changes.
func (h *header) reread(f disk.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var b [frame.SlotSize]byte
	for i, off := range frame.SlotOffsets {
		n, err := f.ReadAt(b[:], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read slot %d: %w", i, err)
		}
		h.slots[i].Slot, h.slots[i].err = h.geo.DecodeSlot(b[:n], off)
	}
	h.size = info.Size
	return nil
}

// newest returns the newest slot that holds, or nil if none does.
func (h *header) newest() *frame.Slot {
	a, b := &h.slots[0], &h.slots[1]
	switch {
	case a.err != nil && b.err != nil:
		return nil
	case b.err != nil || a.err == nil && a.Number > b.Number:
		return &a.Slot
	}
	return &b.Slot
}

// durableEnd returns the largest durable end that a slot names: every slot
// that holds counts, also the older one.
func (h *header) durableEnd() int64 {
	end := h.geo.HeaderArea()
	for i := range h.slots {
		if h.slots[i].err == nil {
			end = max(end, h.slots[i].Durable.Offset)
		}
	}
	return end
}

// begin returns where history begins in this file: behind the retention floor,
// or the log's base.
func (h *header) begin() point {
	if s := h.newest(); s != nil {
		return pointAt(s.Floor)
	}
	if h.lost.at != 0 {
		return pointAt(h.lost.floor)
	}
	return point{end: h.geo.HeaderArea(), rev: h.id.Base.Revision, digest: h.id.Base.Digest}
}

// beginsInside reports a history that begins beyond the end of the file.
func (h *header) beginsInside() error {
	begin := h.begin()
	if begin.end <= h.size {
		return nil
	}
	f := fault{off: h.size, what: fmt.Sprintf("file of %d bytes, in which history begins at offset %d", h.size, begin.end), err: errEnd}
	return f.located(h.geo, begin)
}

// mayWrite refuses a file whose features this version cannot keep up.
func (h *header) mayWrite() error {
	if err := h.mayRead(); err != nil {
		return err
	}
	bits := h.id.Features.UnknownReadOnly()
	if s := h.newest(); s != nil {
		bits |= s.Features.UnknownReadOnly()
	}
	if bits != 0 {
		return unknownFeatures("read-only-compatible", bits)
	}
	return nil
}

// mayRead refuses a file that this version would misread.
func (h *header) mayRead() error {
	for i := range h.slots {
		if errors.Is(h.slots[i].err, frame.ErrUnsupported) {
			return unknownFeatures("incompatible", h.slots[i].Features.UnknownIncompat())
		}
	}
	if s := h.newest(); s != nil && s.Features.UnknownIncompat() != 0 {
		return unknownFeatures("incompatible", s.Features.UnknownIncompat())
	}
	return nil
}

func unknownFeatures(class string, bits uint64) error {
	return fmt.Errorf("%w: the file uses %s features %#x, which format version %d of this program does not know; update Tidemark",
		ErrUnsupported, class, bits, frame.Version)
}

func pointAt(p frame.Place) point {
	return point{end: p.Offset, rev: p.Revision, digest: p.Digest}
}

func (p point) place() frame.Place {
	return frame.Place{Offset: p.end, Revision: p.rev, Digest: p.digest}
}
