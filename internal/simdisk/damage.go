package simdisk

import (
	"fmt"
	"io/fs"
	"slices"
)

// Corrupt changes bytes that exist the way rot and misdirected writes do: on
// disk, without an operation. The running system sees it too, except in sectors
// that are in flight, which it holds in memory.
func (s *FS) Corrupt(name string, off int64, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.lookup(name)
	if n == nil {
		return wrap("corrupt", name, fs.ErrNotExist)
	}
	if off < 0 || off+int64(len(data)) > n.diskSize {
		return wrap("corrupt", name, fmt.Errorf("[%d, %d) of %d bytes on disk: %w",
			off, off+int64(len(data)), n.diskSize, fs.ErrInvalid))
	}
	for len(data) > 0 {
		i, at := off/SectorSize, int(off%SectorSize)
		k := min(SectorSize-at, len(data))
		old := n.disk.get(i)
		inFlight := slices.ContainsFunc(n.pending, func(v version) bool { return v.index == i })
		rotten := s.compose(old, data[:k], at)
		n.disk.set(&s.arena, i, rotten)
		if !inFlight {
			n.live.set(&s.arena, i, rotten)
		}
		data, off = data[k:], off+int64(k)
	}
	return nil
}

// FlipBit inverts one bit of a file, counted from its beginning.
func (s *FS) FlipBit(name string, bit int64) error {
	b, err := s.stretch(name, bit/8, 1)
	if err != nil {
		return err
	}
	b[0] ^= 1 << (bit % 8)
	return s.Corrupt(name, bit/8, b)
}

// ZeroSector makes zeros of the sector around off, as far as the file reaches.
func (s *FS) ZeroSector(name string, off int64) error {
	off -= off % SectorSize
	b, err := s.stretch(name, off, SectorSize)
	if err != nil {
		return err
	}
	clear(b)
	return s.Corrupt(name, off, b)
}

// Swap exchanges two stretches of a file of n bytes each, as two misdirected
// writes would.
func (s *FS) Swap(name string, a, b, n int64) error {
	one, err := s.stretch(name, a, n)
	if err != nil {
		return err
	}
	two, err := s.stretch(name, b, n)
	if err != nil {
		return err
	}
	if len(one) != len(two) {
		return wrap("corrupt", name, fs.ErrInvalid)
	}
	if err := s.Corrupt(name, a, two); err != nil {
		return err
	}
	return s.Corrupt(name, b, one)
}

// stretch returns up to n bytes that are on disk at off.
func (s *FS) stretch(name string, off, n int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := s.lookup(name)
	if node == nil {
		return nil, wrap("corrupt", name, fs.ErrNotExist)
	}
	if off < 0 || off >= node.diskSize {
		return nil, wrap("corrupt", name, fs.ErrInvalid)
	}
	b := make([]byte, min(n, node.diskSize-off))
	readSectors(&node.disk, b, off)
	return b, nil
}
