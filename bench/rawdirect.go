package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blockSize is the unit and alignment of direct writes.
const blockSize = 4096

// rawDirect writes past the page cache. A direct write covers whole blocks,
// so the last, partly filled block is written again by the next commit.
type rawDirect struct {
	recordSize int
	file       *os.File
	path       string
	size       int64 // pre-written bytes

	mu      sync.Mutex
	base    int64  // offset of the block at buf[:blockSize]
	filled  int    // bytes of that block in use
	count   uint64 // records committed
	wrapped bool
	buf     []byte // aligned: the last block, then the records being written
}

func openRawDirect(o Options) (Store, error) {
	pre, err := newRawFile(rawPrewritten, o)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dir, "raw.log")
	if err := pre.Close(); err != nil {
		return nil, err
	}
	flags := os.O_RDWR | unix.O_DIRECT
	if o.Mode == Durable {
		flags |= unix.O_DSYNC
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("open for direct writes: %w", err)
	}
	return &rawDirect{
		recordSize: o.RecordSize, file: f, path: path, size: pre.size,
		buf: alignedBytes(gatherSize + 2*blockSize),
	}, nil
}

// alignedBytes returns n bytes that start on a block boundary.
func alignedBytes(n int) []byte {
	b := make([]byte, n+blockSize)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (blockSize - 1)
	return b[skip:][:n:n]
}

// Commit writes a group in one direct write.
func (r *rawDirect) Commit(group [][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := r.filled
	for _, record := range group {
		if end+len(record) > len(r.buf) {
			return fmt.Errorf("raw direct: group of more than %d bytes", gatherSize)
		}
		end += copy(r.buf[end:], record)
	}
	whole := int(roundUp(int64(end), blockSize))
	clear(r.buf[end:whole])
	if r.base+int64(whole) > r.size {
		r.base, r.wrapped = 0, true
	}
	if _, err := r.file.WriteAt(r.buf[:whole], r.base); err != nil {
		return err
	}
	last := end &^ (blockSize - 1)
	r.filled = copy(r.buf, r.buf[last:end])
	r.base += int64(last)
	r.count += uint64(len(group))
	return nil
}

// Sync is needed only by deferred commits.
func (r *rawDirect) Sync() error { return unix.Fdatasync(int(r.file.Fd())) }

// Replay reads through the page cache.
func (r *rawDirect) Replay(visit func(record []byte)) error {
	if r.wrapped {
		return ErrWrapped
	}
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	return closeWith(replayRaw(f, r.recordSize, r.count, visit), f)
}

// ReadAt reads through the page cache.
func (r *rawDirect) ReadAt(n uint64, buf []byte) ([]byte, error) {
	f, err := os.Open(r.path)
	if err != nil {
		return nil, err
	}
	buf = grow(buf, r.recordSize)
	_, err = f.ReadAt(buf, int64(n)*int64(r.recordSize))
	return buf, closeWith(err, f)
}

// Len returns the number of records committed.
func (r *rawDirect) Len() uint64 { return r.count }

// Close closes the file.
func (r *rawDirect) Close() error { return r.file.Close() }
