package pagelog

import (
	"errors"
	"io"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// resumeRetention completes a retention that a crash left unfinished. The log is
// not shared yet, and what was recovered is durable.
func (l *Log) resumeRetention() error {
	floor, ahead := l.slots.cur.Floor, false
	if f := l.checks.floor; f.Offset > floor.Offset && f.Offset <= l.durable.end {
		floor, ahead = f, true // its group was recovered, and no slot covers it yet
	}
	l.checks.floor = floor
	l.beginAt(floor)
	l.dropping = floor.Revision
	if !ahead {
		left, err := l.leftBelow()
		if err != nil || !left {
			return err
		}
	}
	ok, err := l.confirmFloor(floor)
	if err != nil || !ok {
		return err
	}
	l.slots.nameFloor(floor)
	if err := l.slots.nameTwice(l.durable.place()); err != nil {
		return err
	}
	l.named = l.durable.end
	if err := l.punch(); err != nil && !errors.Is(err, ErrNoPunch) {
		return err
	}
	return nil
}

// confirmFloor reports whether history goes on at a floor: only then is what
// lies below it freed.
func (l *Log) confirmFloor(floor frame.Place) (bool, error) {
	if floor.Offset == l.head.end {
		return floor == l.head.place(), nil
	}
	w := walker{geo: l.geo, win: window{r: l.file, limit: l.head.end, chunk: frame.MinPageSize}, at: pointAt(floor)}
	err := w.next()
	return err == nil, notFault(err)
}

// leftLooks bounds how many pages are looked at where the system does not say
// what is a hole: then pages may stay that could be freed.
const leftLooks = 64

// leftBelow reports whether pages below the floor hold anything.
func (l *Log) leftBelow() (bool, error) {
	from, to := l.droppedPages()
	for n, off := 0, from; off < to && n < leftLooks; n++ {
		data, hole, err := disk.NextData(l.file, off)
		if errors.Is(err, disk.ErrNoClone) {
			return l.leftBetween(from, to)
		}
		if err != nil || data >= to {
			return false, err
		}
		if any, err := l.holds(data, min(hole, to)); any || err != nil {
			return any, err
		}
		off = hole // a block at the ragged end of what was freed
	}
	return false, nil
}

// leftBetween looks at some pages, the first and the last among them.
func (l *Log) leftBetween(from, to int64) (bool, error) {
	page := l.geo.PageSize()
	step := max((to-from)/leftLooks/page*page, page)
	look := min(page, frame.MinPageSize)
	if step > page { // a sample: where a page is there, its header is
		look = frame.PageHeaderSize
	}
	for off := from; off < to; off += step {
		if any, err := l.holds(off, off+look); any || err != nil {
			return any, err
		}
	}
	return l.holds(to-page, to-page+look)
}

// holds reports whether a byte in [from, to) is not zero.
func (l *Log) holds(from, to int64) (bool, error) {
	buf := make([]byte, min(to-from, readChunk))
	for off := from; off < to; off += int64(len(buf)) {
		n, err := l.file.ReadAt(buf[:min(int64(len(buf)), to-off)], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if !frame.IsZero(buf[:n]) {
			return true, nil
		}
	}
	return false, nil
}
