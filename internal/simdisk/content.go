package simdisk

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

// SectorSize is the unit that a disk writes at once, in bytes.
const SectorSize = 512

// sector is one version of a sector's bytes. It never changes once it is part
// of a content, so that any number of images share it.
type sector struct {
	bytes [SectorSize]byte
	sum   atomic.Uint64 // hash of bytes; 0 while not yet computed
}

// zeroes stands for a sector that takes up space and holds zeros, as opposed to
// nil, which is a hole. Nothing writes to it.
var zeroes = new(sector)

// hash returns a hash of the sector's bytes. Zeros, a hole included, hash to 0.
func (s *sector) hash() uint64 {
	if s == nil || s == zeroes {
		return 0
	}
	if h := s.sum.Load(); h != 0 {
		return h
	}
	h := hashPrefix(s, SectorSize)
	s.sum.Store(h)
	return h
}

// hashWithin is hash for a sector of which only n bytes belong to the file.
func (s *sector) hashWithin(n int64) uint64 {
	if n >= SectorSize {
		return s.hash()
	}
	return hashPrefix(s, int(n))
}

// hashPrefix hashes the first n bytes of a sector as if zeros followed.
func hashPrefix(s *sector, n int) uint64 {
	if s == nil || s == zeroes {
		return 0
	}
	end := n
	for end > 0 && s.bytes[end-1] == 0 {
		end--
	}
	if end == 0 {
		return 0
	}
	h := uint64(1)
	for at := 0; at < end; at += 8 {
		var word [8]byte
		copy(word[:], s.bytes[at:min(at+8, end)])
		h = mix(h, binary.LittleEndian.Uint64(word[:]))
	}
	return h
}

// mix folds b into a. It is no cryptography: it only has to make two different
// images collide about as rarely as chance would.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9E3779B97F4A7C15, b^0xD1B54A32D192ED03)
	return hi ^ lo ^ bits.RotateLeft64(a, 23)
}

// chunkSectors is how many sectors are copied at once when a shared chunk is
// about to change.
const chunkSectors = 64

// chunk is a stretch of a content. Its owner may change it; for everybody else
// it is shared and read-only.
type chunk struct {
	owner   *content
	sectors [chunkSectors]*sector
}

// content is the bytes of a file, without its size. Beyond its last chunk
// everything is a hole.
type content struct {
	chunks []*chunk
}

func (c *content) get(i int64) *sector {
	at := i / chunkSectors
	if at >= int64(len(c.chunks)) || c.chunks[at] == nil {
		return nil
	}
	return c.chunks[at].sectors[i%chunkSectors]
}

// set replaces sector i, copying the chunk first if somebody shares it.
func (c *content) set(a *arena, i int64, s *sector) {
	at := i / chunkSectors
	for at >= int64(len(c.chunks)) {
		c.chunks = append(c.chunks, nil)
	}
	ch := c.chunks[at]
	if ch == nil || ch.owner != c {
		ch = a.chunk(ch)
		ch.owner = c
		c.chunks[at] = ch
	}
	ch.sectors[i%chunkSectors] = s
}

// share makes c the same as from. Whichever of the two changes first copies.
func (c *content) share(from *content) {
	c.chunks = append(c.chunks[:0], from.chunks...)
	for _, ch := range c.chunks {
		if ch != nil && ch.owner == from {
			ch.owner = nil
		}
	}
}

// copyFrom makes c the same as from with chunks of its own from a.
func (c *content) copyFrom(a *arena, from *content) {
	c.chunks = c.chunks[:0]
	for _, ch := range from.chunks {
		if ch != nil {
			ch = a.chunk(ch)
			ch.owner = c
		}
		c.chunks = append(c.chunks, ch)
	}
}

// present calls f for every sector in [from, to) that is not a hole.
func (c *content) present(from, to int64, f func(i int64, s *sector)) {
	to = min(to, int64(len(c.chunks))*chunkSectors)
	for i := from; i < to; {
		ch := c.chunks[i/chunkSectors]
		if ch == nil {
			i = (i/chunkSectors + 1) * chunkSectors
			continue
		}
		if s := ch.sectors[i%chunkSectors]; s != nil {
			f(i, s)
		}
		i++
	}
}

// arena hands out chunks and sectors. Chunks come back all at once, when the
// image they belong to is built anew; sectors are left to the collector,
// because images share them freely.
type arena struct {
	chunks []*chunk
	used   int
	slab   []sector
}

// chunk returns a copy of from, or an empty chunk for nil.
func (a *arena) chunk(from *chunk) *chunk {
	if a.used == len(a.chunks) {
		a.chunks = append(a.chunks, new(chunk))
	}
	ch := a.chunks[a.used]
	a.used++
	if from == nil {
		*ch = chunk{}
	} else {
		ch.sectors = from.sectors
	}
	return ch
}

func (a *arena) sector() *sector {
	const slabSectors = 32
	if len(a.slab) == 0 {
		a.slab = make([]sector, slabSectors)
	}
	s := &a.slab[0]
	a.slab = a.slab[1:]
	return s
}

func (a *arena) reset() { a.used = 0 }
