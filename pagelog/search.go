package pagelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// evidence is what group headers beyond a damaged place prove. It may raise
// the proven end and is never adopted as history.
type evidence struct {
	durableEnd int64  // the largest durable end any header names
	epoch      uint64 // the largest epoch seen
	dirtEnd    int64  // behind the last byte that is not zero, or from
}

// search looks at every offset in [from, size) where a group header may lie.
// It reads the stretch once, in bounded memory, and of holes only the first
// bytes: a file of any size takes the time that its data takes.
func search(r io.ReaderAt, g *frame.Geometry, from, size int64) (evidence, error) {
	ev := evidence{dirtEnd: from}
	if from >= size {
		return ev, nil
	}
	buf := searchBuffers.Get().(*searchBuffer)
	defer searchBuffers.Put(buf)
	for off := from &^ 7; off < size; off += searchChunk {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return ev, fmt.Errorf("read at offset %d: %w", off, err)
		}
		ev.look(g, buf[:n], off)
		if n < len(buf) && err != nil {
			break
		}
		if frame.IsZero(buf[:n]) {
			off += max(nextData(r, off)-off-searchChunk, 0) / searchChunk * searchChunk
		}
	}
	return ev, nil
}

const searchChunk = 256 << 10

type searchBuffer [searchChunk + frame.GroupHeaderSize]byte

// searchBuffers are used again: a reader that is asked for the head searches
// what lies behind it each time.
var searchBuffers = sync.Pool{New: func() any { return new(searchBuffer) }}

// nextData returns the first offset at or behind off that is no hole, or off
// where the system does not say.
func nextData(r io.ReaderAt, off int64) int64 {
	from, _, ok := dataAt(r, off)
	if !ok {
		return off
	}
	return from
}

// dataAt is disk.NextData of the file beneath r; ok says that the system does.
func dataAt(r io.ReaderAt, off int64) (from, to int64, ok bool) {
	if c, ok := r.(ctxReader); ok {
		r = c.r
	}
	if u, ok := r.(unclosed); ok {
		r = u.File
	}
	f, ok := r.(disk.File)
	if !ok {
		return off, off, false
	}
	from, to, err := disk.NextData(f, off)
	return from, to, err == nil
}

// fileRange is a stretch of a file.
type fileRange struct{ from, to int64 }

// dataIn lists the stretches that are no holes, as far as they begin in
// [from, to): one of all where the system does not say.
func dataIn(r io.ReaderAt, from, to int64) []fileRange {
	var data []fileRange
	for off := from; off < to; {
		start, end, ok := dataAt(r, off)
		if !ok || end < start {
			return []fileRange{{from, to}}
		}
		if start >= to || end == start {
			break
		}
		data = append(data, fileRange{start, min(end, to)})
		off = end
	}
	return data
}

// look examines one chunk that lies at off; its last bytes are looked at again
// at the head of the next.
func (ev *evidence) look(g *frame.Geometry, b []byte, off int64) {
	for at := 0; at+8 <= len(b); at += 8 {
		if binary.LittleEndian.Uint64(b[at:]) == 0 {
			continue
		}
		here := off + int64(at)
		ev.dirtEnd = max(ev.dirtEnd, here+8)
		if at+frame.GroupHeaderSize > len(b) || !g.IsMark(b[at:], here) || !g.MayStart(here) {
			continue
		}
		h, err := g.DecodeGroup(b[at:], here)
		if err != nil && !errors.Is(err, frame.ErrUnsupported) {
			continue
		}
		if h.DurableEnd <= here {
			ev.durableEnd = max(ev.durableEnd, h.DurableEnd)
			ev.epoch = max(ev.epoch, h.Epoch)
		}
	}
	if tail := len(b) % 8; tail > 0 && !frame.IsZero(b[len(b)-tail:]) {
		ev.dirtEnd = max(ev.dirtEnd, off+int64(len(b)))
	}
}
