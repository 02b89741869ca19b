package frame

// Builder lays groups out as the bytes of one write. It belongs to one
// goroutine; its buffer is reused from write to write.
//
// Reset, then Add for each group, then Seal, then write Bytes at Offset.
type Builder struct {
	geo    *Geometry
	buf    []byte
	off    int64   // file offset of buf[0]
	end    int64   // raw end of the last group added
	last   uint64  // revision of the last data group
	starts []int64 // of the groups added
}

// NewBuilder returns a builder for files of this geometry.
func NewBuilder(g *Geometry) *Builder { return &Builder{geo: g} }

// Reset begins a new write behind end, the raw end of the last group in the
// file; last is the revision of the last data group.
func (b *Builder) Reset(end int64, last uint64) {
	b.buf, b.starts = b.buf[:0], b.starts[:0]
	b.off, b.end, b.last = b.geo.WriteStart(end), end, last
}

// Add lays out one group and returns its raw end. The header's DurableEnd is
// filled in by Seal; everything else is the caller's. body is copied.
func (b *Builder) Add(h *GroupHeader, body []byte) (end int64) {
	start := b.geo.Start(b.end)
	end = b.geo.End(start, int64(len(body)))
	next := b.geo.Start(end)
	b.pad(start)
	at := len(b.buf)
	b.buf = append(b.buf, make([]byte, GroupHeaderSize)...)
	b.geo.PutGroup(b.buf[at:], start, h)
	for len(body) > 0 {
		pos := b.off + int64(len(b.buf))
		if pos%b.geo.pageSize == 0 {
			b.page(pos, PageHeader{First: b.geo.firstStart(pos, next), Last: h.Revision})
			pos += PageHeaderSize
		}
		n := min(int64(len(body)), b.geo.pageSize-pos%b.geo.pageSize)
		b.buf = append(b.buf, body[:n]...)
		body = body[n:]
	}
	b.starts = append(b.starts, start)
	b.end, b.last = end, h.Revision // a derived group has the last data group's
	return end
}

// pad fills the gap before a group that starts at start.
func (b *Builder) pad(start int64) {
	gap := start - b.off - int64(len(b.buf))
	if start%b.geo.pageSize != PageHeaderSize {
		b.buf = append(b.buf, make([]byte, gap)...)
		return
	}
	b.buf = append(b.buf, make([]byte, gap-PageHeaderSize)...)
	b.page(start-PageHeaderSize, PageHeader{First: PageHeaderSize, Last: b.last})
}

func (b *Builder) page(off int64, h PageHeader) {
	h.Number = off / b.geo.pageSize
	at := len(b.buf)
	b.buf = append(b.buf, make([]byte, PageHeaderSize)...)
	b.geo.PutPage(b.buf[at:], off, h)
}

// Seal fills the durable end and the sums into every group added, and pads the
// write to the alignment. It comes immediately before the write.
func (b *Builder) Seal(durableEnd int64) {
	for _, start := range b.starts {
		b.geo.sealGroup(b.buf[start-b.off:], start, durableEnd)
	}
	tail := b.geo.WriteEnd(b.end) - b.off - int64(len(b.buf))
	b.buf = append(b.buf, make([]byte, tail)...)
}

// Offset returns where in the file Bytes belongs.
func (b *Builder) Offset() int64 { return b.off }

// End returns the raw end of the last group added.
func (b *Builder) End() int64 { return b.end }

// Bytes returns the write. It is valid until the next Reset.
func (b *Builder) Bytes() []byte { return b.buf }

// Trim drops a buffer that grew beyond keep bytes, so that one large group
// does not hold its memory for ever.
func (b *Builder) Trim(keep int) {
	if cap(b.buf) > keep {
		b.buf = nil
	}
}
