package frame

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"
)

// PageHeader begins every page after the header area, at a place that payload
// can never occupy.
type PageHeader struct {
	Number int64  // offset / page size
	First  uint32 // where in the page the first group starts; 0: none does
	Last   uint64 // last data revision begun before the page's first byte
}

// PutPage writes the header of the page that begins at off into b.
func (g *Geometry) PutPage(b []byte, off int64, h PageHeader) {
	copy(b[pageMagic:], pageMagicText)
	binary.LittleEndian.PutUint32(b[pageFirst:], h.First)
	binary.LittleEndian.PutUint64(b[pageNumber:], uint64(h.Number))
	binary.LittleEndian.PutUint64(b[pageLast:], h.Last)
	binary.LittleEndian.PutUint64(b[pageSum:], xxh3.HashSeed(b[:pageSum], g.spanAt(off).salt))
}

// DecodePage reads the header of the page that begins at off. Errors: ErrMark,
// ErrSum, ErrField.
func (g *Geometry) DecodePage(b []byte, off int64) (PageHeader, error) {
	if len(b) < PageHeaderSize || string(b[:4]) != pageMagicText {
		return PageHeader{}, ErrMark
	}
	if binary.LittleEndian.Uint64(b[pageSum:]) != xxh3.HashSeed(b[:pageSum], g.spanAt(off).salt) {
		return PageHeader{}, ErrSum
	}
	number := binary.LittleEndian.Uint64(b[pageNumber:])
	h := PageHeader{
		Number: int64(number & math.MaxInt64),
		First:  binary.LittleEndian.Uint32(b[pageFirst:]),
		Last:   binary.LittleEndian.Uint64(b[pageLast:]),
	}
	if number != uint64(off/g.pageSize) || off%g.pageSize != 0 || h.Last > math.MaxInt64 {
		return PageHeader{}, ErrField
	}
	if h.First != 0 && (int64(h.First) >= g.pageSize || !g.MayStart(off+int64(h.First))) {
		return PageHeader{}, ErrField
	}
	return h, nil
}
