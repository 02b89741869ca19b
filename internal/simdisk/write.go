package simdisk

import (
	"bytes"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// sectorsIn returns the sectors that [off, end) touches, as a range.
func sectorsIn(off, end int64) (from, to int64) {
	return off / SectorSize, (end + SectorSize - 1) / SectorSize
}

// room returns how many of n bytes at off find space, and disk.ErrNoSpace if it
// is not all of them.
func (s *FS) room(n *inode, off int64, length int) (int, error) {
	if s.Capacity == 0 {
		return length, nil
	}
	free := s.Capacity/SectorSize - s.used
	from, to := sectorsIn(off, off+int64(length))
	for i := from; i < to; i++ {
		if n.live.get(i) != nil {
			continue
		}
		if free == 0 {
			return int(max(0, i*SectorSize-off)), disk.ErrNoSpace
		}
		free--
	}
	return length, nil
}

// place makes data what the running system sees of a sector and leaves it in
// flight.
func (s *FS) place(n *inode, v version) {
	if s.Capacity != 0 {
		switch old := n.live.get(v.index); {
		case old == nil && v.data != nil:
			s.used++
		case old != nil && v.data == nil:
			s.used--
		}
	}
	n.put(&s.arena, v)
}

// write puts p at off. Space has been checked.
func (s *FS) write(n *inode, p []byte, off int64) {
	seq, end := s.next(), off+int64(len(p))
	for len(p) > 0 {
		i, at := off/SectorSize, int(off%SectorSize)
		k := min(SectorSize-at, len(p))
		s.place(n, version{seq: seq, index: i, data: s.compose(n.live.get(i), p[:k], at)})
		p, off = p[k:], off+int64(k)
	}
	if end >= n.size {
		n.resize(seq, end)
	}
}

// compose returns a sector that is old with p at at.
func (s *FS) compose(old *sector, p []byte, at int) *sector {
	var none [SectorSize]byte
	if bytes.Equal(p, none[:len(p)]) && (len(p) == SectorSize || old == nil || old == zeroes) {
		return zeroes
	}
	fresh := s.arena.sector()
	if old != nil && len(p) < SectorSize {
		fresh.bytes = old.bytes
	}
	copy(fresh.bytes[at:], p)
	return fresh
}

// allocate fills holes in [off, off+n) with reserved zeros. Reserved and
// written zeros read the same on disk, so that only the size is in flight.
func (s *FS) allocate(n *inode, off, length int64) error {
	if s.Capacity != 0 {
		if _, err := s.room(n, off, int(length)); err != nil {
			return err
		}
		from, to := sectorsIn(off, off+length)
		for i := from; i < to; i++ {
			if n.live.get(i) == nil {
				n.live.set(&s.arena, i, zeroes)
				s.used++
			}
		}
	}
	if end := off + length; length > 0 && end > n.size {
		n.resize(s.next(), end)
	}
	return nil
}

// erase makes [off, end) zeros, freeing whole sectors, and returns the number
// of the operation. Erasing the tail of a file is metadata: whole blocks leave
// the file together with its size.
func (s *FS) erase(n *inode, off, end int64, isMeta bool) uint64 {
	seq := s.next()
	if off >= end {
		return seq
	}
	tail := isMeta // what lies behind the end of the file goes as well
	var none [SectorSize]byte
	from, to := sectorsIn(off, end)
	n.live.present(from, to, func(i int64, old *sector) {
		a := max(off, i*SectorSize) - i*SectorSize
		b := min(end, (i+1)*SectorSize) - i*SectorSize
		if tail {
			b = SectorSize
		}
		data := (*sector)(nil)
		if b-a < SectorSize {
			data = s.compose(old, none[:b-a], int(a))
		}
		s.place(n, version{seq: seq, index: i, data: data, isMeta: isMeta})
	})
	if n.unclean {
		s.eraseLost(n, from, to, version{seq: seq, isMeta: isMeta})
	}
	return seq
}

// eraseLost gives the holes in [from, to) a version as well where what is on
// disk is uncertain: the running system sees zeros already, but only an erasure
// that lasts makes them certain.
func (s *FS) eraseLost(n *inode, from, to int64, v version) {
	for _, lost := range n.pending {
		if lost.isLost && lost.index >= from && lost.index < to && n.live.get(lost.index) == nil {
			v.index = lost.index
			n.put(&s.arena, v)
		}
	}
}
