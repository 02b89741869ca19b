// Package blockdev is a disk in memory that remembers every write and flush, so
// that what a power cut at any moment may leave can be rebuilt.
//
// What a cut after record k leaves: every write before the last flush that had
// ended by then, and of the later ones any 512-byte sectors, each whole.
package blockdev

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// Mode is what becomes of the writes that no flush covers.
type Mode string

// The modes.
const (
	Drop Mode = "drop" // nothing of them is left
	Keep Mode = "keep" // everything of them is
	Rand Mode = "rand" // any sectors of them are
)

// Disk is a disk of a fixed size. Its methods may run concurrently.
type Disk struct {
	mu        sync.Mutex
	size      int64
	base      map[int64][]byte // pages at the mark, shared with images, never changed
	over      map[int64][]byte // pages written since
	recording bool
	log       []record
	failWrite int // writes until one fails; 0: never
	failFlush int
}

// record is a write, or a flush if it has no data.
type record struct {
	off  int64
	data []byte
}

// New returns a disk of zeros.
func New(size int64) *Disk {
	return &Disk{size: size, base: map[int64][]byte{}, over: map[int64][]byte{}}
}

// Size is in bytes.
func (d *Disk) Size() int64 { return d.size }

// Mark forgets how the disk came to hold what it holds, and records from here.
func (d *Disk) Mark() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base = maps.Clone(d.base)
	maps.Copy(d.base, d.over)
	d.over, d.log, d.recording = map[int64][]byte{}, nil, true
}

// Position is the number of records since the mark.
func (d *Disk) Position() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

// FailWrite lets the n-th write from now fail, once.
func (d *Disk) FailWrite(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failWrite = n
}

// FailFlush lets the n-th flush from now fail, once.
func (d *Disk) FailFlush(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failFlush = n
}

// strikes counts a fault down and reports whether it is due.
func strikes(n *int) bool {
	if *n == 0 {
		return false
	}
	*n--
	return *n == 0
}

// ReadAt fills b. It is io.ReaderAt but for reads beyond the end, which the
// kernel does not make.
func (d *Disk) ReadAt(b []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if off < 0 || off+int64(len(b)) > d.size {
		return 0, fmt.Errorf("read of %d bytes at %d: %w", len(b), off, syscall.EINVAL)
	}
	for n := 0; n < len(b); {
		at := off + int64(n)
		page := d.page(at / pageSize)
		part := b[n:min(len(b), n+int(pageSize-at%pageSize))]
		if page == nil {
			clear(part)
		} else {
			copy(part, page[at%pageSize:])
		}
		n += len(part)
	}
	return len(b), nil
}

func (d *Disk) page(i int64) []byte {
	if p := d.over[i]; p != nil {
		return p
	}
	return d.base[i]
}

// WriteAt writes b to the disk's cache.
func (d *Disk) WriteAt(b []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if strikes(&d.failWrite) {
		return 0, syscall.EIO
	}
	if off < 0 || off+int64(len(b)) > d.size {
		return 0, fmt.Errorf("write of %d bytes at %d: %w", len(b), off, syscall.EINVAL)
	}
	d.put(b, off)
	if d.recording {
		d.log = append(d.log, record{off, append([]byte{}, b...)})
	}
	return len(b), nil
}

func (d *Disk) put(b []byte, off int64) {
	for len(b) > 0 {
		i := off / pageSize
		page := d.over[i]
		if page == nil {
			page = make([]byte, pageSize)
			copy(page, d.base[i])
			d.over[i] = page
		}
		n := copy(page[off%pageSize:], b)
		off, b = off+int64(n), b[n:]
	}
}

// Flush makes durable what was written.
func (d *Disk) Flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if strikes(&d.failFlush) {
		return syscall.EIO
	}
	if d.recording {
		d.log = append(d.log, record{})
	}
	return nil
}

// Image returns the disk that a power cut after cut records since the mark
// leaves. The seed decides in the mode Rand. It shares what both have in
// common.
func (d *Disk) Image(cut int, seed uint64, mode Mode) (*Disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cut < 0 || cut > len(d.log) {
		return nil, fmt.Errorf("no record %d, there are %d", cut, len(d.log))
	}
	image := &Disk{size: d.size, base: d.base, over: map[int64][]byte{}}
	flushed := 0
	for i, r := range d.log[:cut] {
		if r.data == nil {
			flushed = i
		}
	}
	random := rand.New(rand.NewPCG(seed, uint64(cut)))
	for i, r := range d.log[:cut] {
		switch {
		case i < flushed || mode == Keep:
			image.put(r.data, r.off)
		case mode == Rand:
			image.putSome(r, random)
		case mode != Drop:
			return nil, errors.New("no such mode")
		}
	}
	return image, nil
}

// Unflushed lists the writes that a cut may lose, for messages.
func (d *Disk) Unflushed(cut int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for _, r := range d.log[:min(max(cut, 0), len(d.log))] {
		if r.data == nil {
			list = list[:0]
			continue
		}
		list = append(list, fmt.Sprintf("%d+%d", r.off, len(r.data)))
	}
	return strings.Join(list, " ")
}

// whole lists what lands in one piece: superblocks of several sectors under one
// sum, which is checked before a journal or an older tree could mend them. ext4
// and btrfs do not mount if theirs is torn, and that is not what is tested here.
var whole = []struct{ from, to int64 }{
	{1024, 2048},   // of ext4
	{65536, 69632}, // of btrfs
}

// putSome writes any sectors of r.
func (d *Disk) putSome(r record, random *rand.Rand) {
	for at := 0; at < len(r.data); {
		end := at + sectorSize
		for _, w := range whole {
			if from := r.off + int64(at); from >= w.from && from < w.to {
				end = int(w.to - r.off)
			}
		}
		end = min(end, len(r.data))
		if random.IntN(2) == 0 {
			d.put(r.data[at:end], r.off+int64(at))
		}
		at = end
	}
}
