package pagelog

import (
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// Where history begins if both slots are lost: the newest checkpoint or floor
// group says so. It is looked for backwards, page by page, and is only as good
// as the group it is in: if the walk from that floor does not come to the group,
// the one before it decides.

// lostFloor is a floor that a group in the file names.
type lostFloor struct {
	floor      frame.Place
	generation uint64
	at         int64 // where the group starts; 0: there is none
}

// findFloor looks for the newest floor that a group before an offset names.
func (h *header) findFloor(r io.ReaderAt, before int64) error {
	h.lost = lostFloor{}
	g := h.geo
	var b [frame.PageHeaderSize]byte
	data := dataIn(r, g.HeaderArea(), min(before, h.size))
	for page := g.PageStart(min(before, h.size) - 1); h.lost.at == 0; page -= g.PageSize() {
		for len(data) > 0 && data[len(data)-1].from >= page+g.PageSize() {
			data = data[:len(data)-1]
		}
		if len(data) == 0 {
			return nil
		}
		page = min(page, g.PageStart(data[len(data)-1].to-1)) // a hole is not read
		n, err := r.ReadAt(b[:], page)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read at offset %d: %w", page, err)
		}
		p, err := g.DecodePage(b[:n], page)
		if err != nil || p.First == 0 {
			continue
		}
		if err := h.floorsIn(r, page+int64(p.First), min(before, page+g.PageSize())); err != nil {
			return err
		}
	}
	return nil
}

// floorsIn keeps the last floor that the groups from start on name, as far as
// they begin before end.
func (h *header) floorsIn(r io.ReaderAt, start, end int64) error {
	g := h.geo
	runs := runReader{file: r, geo: g}
	var b [frame.GroupHeaderSize]byte
	for start < end {
		n, err := r.ReadAt(b[:], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read at offset %d: %w", start, err)
		}
		head, err := g.DecodeGroup(b[:n], start)
		if err != nil {
			return nil
		}
		next := g.End(start, head.Body)
		if next < 0 || next > h.size { // nothing beyond the file is read, or made room for
			return nil
		}
		if head.Derived() {
			body, err := runs.record(start, head.Body)
			if err = onlyRead(err); err != nil {
				return err
			}
			if f := floorOf(body); f.floor.Offset > 0 && f.floor.Offset <= start && g.MayEnd(f.floor.Offset) {
				f.at = start
				h.lost = f
			}
		}
		start = g.Start(next)
	}
	return nil
}

// floorOf returns the floor that the first record of a derived group names.
func floorOf(body []byte) lostFloor {
	for record := range frame.Records(body) {
		if !record.Holds() {
			break
		}
		switch record.Kind {
		case frame.KindFloor:
			if f, err := checkpoint.DecodeFloor(record.Data); err == nil {
				return lostFloor{floor: f.Place, generation: f.Generation}
			}
		case frame.KindCheckpoint:
			if c, err := checkpoint.Decode(record.Data); err == nil {
				return lostFloor{floor: c.Floor, generation: c.Generation}
			}
		}
		break
	}
	return lostFloor{}
}

// offChain reports whether the group that named the floor is not part of the
// history that ends at end.
func (h *header) offChain(end int64) bool {
	return h.newest() == nil && h.lost.at >= end && h.lost.at != 0
}
