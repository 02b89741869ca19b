// Package unsynced keeps apart what of a file is durable and what a loss of
// power may take: the strictest reading of what a sync promises.
package unsynced

import "math/rand/v2"

// sectorSize is what a disk writes whole.
const sectorSize = 512

// File is the contents of a file on a disk. The zero value is empty and
// durable.
type File struct {
	durable []byte
	pending []change
}

// change is what was done since the last sync: a write, or a new size.
type change struct {
	off  int64
	data []byte // nil: the size became off
}

// Durable returns a file that holds b, as durable.
func Durable(b []byte) *File { return &File{durable: b} }

// Write notes a write. It keeps b.
func (f *File) Write(b []byte, off int64) {
	if len(b) > 0 {
		f.pending = append(f.pending, change{off, b})
	}
}

// Resize notes a new size.
func (f *File) Resize(size int64) { f.pending = append(f.pending, change{off: size}) }

// Sync makes everything durable.
func (f *File) Sync() {
	for _, c := range f.pending {
		f.durable = c.apply(f.durable)
	}
	f.pending = nil
}

// FailSync is a sync that fails: the system has everything as clean in memory,
// and no later sync carries it. Only writing it again does.
func (f *File) FailSync() { f.pending = nil }

// Pending is the number of changes that no sync covers.
func (f *File) Pending() int { return len(f.pending) }

// Clone returns a file that goes its own way.
func (f *File) Clone() *File {
	return &File{append([]byte{}, f.durable...), append([]change{}, f.pending...)}
}

// Keep returns the contents if everything reached the disk.
func (f *File) Keep() []byte { return f.some(func() bool { return true }) }

// Drop returns the contents if nothing did that was not synced.
func (f *File) Drop() []byte { return append([]byte{}, f.durable...) }

// Some returns the contents if any sectors and sizes did.
func (f *File) Some(r *rand.Rand) []byte {
	return f.some(func() bool { return r.IntN(2) == 0 })
}

func (f *File) some(lands func() bool) []byte {
	b := f.Drop()
	for _, c := range f.pending {
		if c.data == nil {
			if lands() {
				b = c.apply(b)
			}
			continue
		}
		for at := int64(0); at < int64(len(c.data)); {
			end := min((c.off+at)/sectorSize*sectorSize+sectorSize-c.off, int64(len(c.data)))
			if lands() {
				b = change{c.off + at, c.data[at:end]}.apply(b)
			}
			at = end
		}
	}
	return b
}

// apply returns b with the change made to it.
func (c change) apply(b []byte) []byte {
	end := c.off + int64(len(c.data))
	if c.data == nil && end <= int64(len(b)) {
		return b[:end]
	}
	if grow := end - int64(len(b)); grow > 0 {
		b = append(b, make([]byte, grow)...)
	}
	copy(b[c.off:], c.data)
	return b
}
