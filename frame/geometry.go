package frame

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"
)

// Geometry answers where things lie in one file and which salt holds there. It
// is made from an identity once and never changes; any number of goroutines
// may use it.
type Geometry struct {
	pageSize   int64
	align      int64
	headerArea int64
	maxBody    int64
	spans      []span // ascending by end; the last one ends at MaxInt64
}

// span is a stretch of the file and the salt of what starts in it.
type span struct {
	end  int64
	salt uint64
	mark uint64
}

// Geometry returns the geometry of the file that id, a valid identity,
// describes.
func (id *Identity) Geometry() *Geometry {
	g := &Geometry{
		pageSize:   int64(id.PageSize),
		align:      int64(id.Align),
		headerArea: max(minHeaderArea, int64(id.PageSize)),
		maxBody:    max(int64(id.MaxGroup), maxDerivedBody),
	}
	for _, a := range id.Lineage {
		g.spans = append(g.spans, span{a.End, a.Salt, Mark(a.Salt)})
	}
	g.spans = append(g.spans, span{math.MaxInt64, id.Salt, Mark(id.Salt)})
	return g
}

// Mark returns the 8 bytes that every group of a salt begins with.
func Mark(salt uint64) uint64 { return xxh3.HashStringSeed(groupMarkText, salt) }

func (g *Geometry) spanAt(off int64) *span {
	i := 0
	for off >= g.spans[i].end && i < len(g.spans)-1 {
		i++
	}
	return &g.spans[i]
}

// PageSize returns the size of a page in bytes.
func (g *Geometry) PageSize() int64 { return g.pageSize }

// HeaderArea returns the size of the header area: where the first page begins.
func (g *Geometry) HeaderArea() int64 { return g.headerArea }

// MaxBody returns the bytes that the body of a group may have in this file.
func (g *Geometry) MaxBody() int64 { return g.maxBody }

// Page returns the number of the page that holds off.
func (g *Geometry) Page(off int64) int64 { return off / g.pageSize }

// PageStart returns the offset of the first byte of the page that holds off.
func (g *Geometry) PageStart(off int64) int64 { return off - off%g.pageSize }

// WriteStart returns where the write begins that puts a group behind end: on a
// fresh block of the alignment. The bytes between are zero already.
func (g *Geometry) WriteStart(end int64) int64 { return roundUp(end, g.align) }

// WriteEnd returns where the write ends that puts a group's last byte at end:
// it runs on with zeros, so that the next write begins a fresh block.
func (g *Geometry) WriteEnd(end int64) int64 { return roundUp(end, g.align) }

// Start returns where a group begins that follows the raw end of its
// predecessor: aligned, and past padding and page header if no group header
// fits in the rest of the page. Its result is one that MayStart accepts, for
// every end up to the largest offset.
func (g *Geometry) Start(end int64) int64 {
	s := roundUp(end, g.align)
	in := s % g.pageSize
	if in < PageHeaderSize {
		return s - in + PageHeaderSize
	}
	if g.pageSize-in < GroupHeaderSize {
		return s - in + g.pageSize + PageHeaderSize
	}
	return s
}

// End returns the raw end of a group that begins at start with a body of the
// given length in bytes, or -1 if it would lie beyond every possible file.
func (g *Geometry) End(start, body int64) int64 {
	if body < 0 || body > maxOffset || start < 0 || start > maxOffset {
		return -1
	}
	n := GroupHeaderSize + body
	room := g.pageSize - start%g.pageSize
	if n <= room {
		return start + n
	}
	rest := n - room
	perPage := g.pageSize - PageHeaderSize
	full := (rest - 1) / perPage
	return g.PageStart(start) + (1+full)*g.pageSize + PageHeaderSize + rest - full*perPage
}

// MayStart reports whether a group header may lie at off: on the alignment or
// right behind a page header, with room for all of it in the page.
func (g *Geometry) MayStart(off int64) bool {
	in := off % g.pageSize
	return off >= g.headerArea && off <= maxOffset && (off%g.align == 0 || in == PageHeaderSize) &&
		in >= PageHeaderSize && g.pageSize-in >= GroupHeaderSize
}

// MayEnd reports whether off can be the raw end of a group, or the end of the
// header area, where the first group has its predecessor's.
func (g *Geometry) MayEnd(off int64) bool {
	in := off % g.pageSize
	return off >= g.headerArea && off <= maxOffset && off%8 == 0 && (in == 0 || in > PageHeaderSize)
}

// IsMark reports whether b begins with the mark of the groups that may start
// at off. It is the cheap test before DecodeGroup.
func (g *Geometry) IsMark(b []byte, off int64) bool {
	return len(b) >= 8 && binary.LittleEndian.Uint64(b) == g.spanAt(off).mark
}

// firstStart returns the first-start field of the page that begins at page, if
// the next group of the file starts at start.
func (g *Geometry) firstStart(page, start int64) uint32 {
	if start-page >= g.pageSize {
		return 0
	}
	return uint32(start - page)
}

// Gather turns the raw bytes of a group into its body: raw holds the file's
// bytes from the group's start to its raw end, as End has it, and is changed
// in place; the body is a part of it. The second result is the offset of the first page
// header in it that is not the one that belongs there, or 0.
func (g *Geometry) Gather(raw []byte, h *GroupHeader, start int64) (body []byte, badPage int64) {
	end := start + int64(len(raw))
	room := g.pageSize - start%g.pageSize
	if int64(len(raw)) <= room {
		return raw[GroupHeaderSize:], 0
	}
	next := g.Start(end)
	n := room
	for page := start + room; page < end; page += g.pageSize {
		at := page - start
		want := PageHeader{Number: page / g.pageSize, First: g.firstStart(page, next), Last: h.Revision}
		if badPage == 0 && !g.isPage(raw[at:], page, want) {
			badPage = page
		}
		n += int64(copy(raw[n:], raw[min(at+PageHeaderSize, int64(len(raw))):min(at+g.pageSize, int64(len(raw)))]))
	}
	return raw[GroupHeaderSize:n], badPage
}

// CheckGap checks the bytes between the raw end of one group and the start of
// the next, which are all of gap: zero, but for a page header. last is the
// revision of the last data group before. badPage is the offset of a page
// header that is not the one that belongs there, or 0. Errors: ErrPadding.
func (g *Geometry) CheckGap(gap []byte, end int64, last uint64) (badPage int64, err error) {
	start := end + int64(len(gap))
	zeros := gap
	if start%g.pageSize == PageHeaderSize {
		at := max(0, len(gap)-PageHeaderSize)
		page := start - PageHeaderSize
		want := PageHeader{Number: page / g.pageSize, First: PageHeaderSize, Last: last}
		if !g.isPage(gap[at:], page, want) {
			badPage = page
		}
		zeros = gap[:at]
	}
	if !IsZero(zeros) {
		return badPage, ErrPadding
	}
	return badPage, nil
}

func (g *Geometry) isPage(b []byte, page int64, want PageHeader) bool {
	got, err := g.DecodePage(b, page)
	return err == nil && got == want
}

// IsZero reports whether all of b is zero.
func IsZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
