package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"
)

// rawMode is how the blocks under a raw loop came to be.
type rawMode int

const (
	rawGrow       rawMode = iota // the file grows with every write
	rawPrewritten                // blocks hold written zeros already
	rawFallocated                // blocks are allocated, their extents unwritten
	rawAhead                     // blocks are zeroed on the way, some writes ahead
)

const (
	// zeroChunk is the size of the writes that zero a file ahead. The page
	// cache keeps folios of that size, and small writes into large folios cost
	// more, so it stays small.
	zeroChunk = 64 << 10
	// gatherSize is how much a deferred raw loop collects before it writes.
	gatherSize = 1 << 20
	// readChunk is the size of the reads of a raw replay.
	readChunk = 256 << 10
	// zeroMore is by how much a file is zeroed ahead, as Tidemark does at most.
	zeroMore = 512 << 10
	// fallocateMore is by how much a fallocated file is extended when full.
	fallocateMore = 64 << 20
	// pageSize is what a bare read of one Tidemark page reads.
	pageSize = 16 << 10
)

// rawWorkloads are those a loop with one caller can be the floor of.
var rawWorkloads = []string{"W1", "W2", "W4", "W5", "W6", "W7", "W10", "W12"}

func rawPeers() []Peer {
	raw := func(name, note string, open func(Options) (Store, error), workloads ...string) Peer {
		return Peer{
			Name: name, Kind: Floor, Workloads: workloads, Open: open,
			Traits: Traits{Sums: SumsNone, Reads: ReadsFile, Note: note},
		}
	}
	growing := raw("raw grow", "pwrite and fdatasync at the end of a growing file",
		openRaw(rawGrow), "W1", "W2", "W4", "W5", "W11")
	growing.Light = true
	prewritten := raw("raw prewritten", "pwrite and fdatasync into zeros written before; no framing, sums only when it replays",
		openRaw(rawPrewritten), rawWorkloads...)
	prewritten.Verify, prewritten.Follow = verifyRaw, followRaw
	return []Peer{
		growing,
		prewritten,
		raw("raw fallocated", "pwrite and fdatasync into unwritten extents",
			openRaw(rawFallocated), "W1", "W2", "W4", "W5"),
		raw("raw ahead", "pwrite and fdatasync into zeros it writes on the way, 512 KiB ahead: what a log can reach that does not know its length",
			openRaw(rawAhead), "W1", "W2", "W4"),
		raw("raw direct", "O_DIRECT and O_DSYNC writes of whole blocks, the last block rewritten until it is full",
			openRawDirect, "W1", "W2", "W4"),
		raw("raw leader", "pwrite and fdatasync into zeros written before; one caller leads and writes for all who wait",
			openRawLeader(rawPrewritten), "W3"),
		raw("raw leader ahead", "the same into zeros it writes on the way, 512 KiB ahead",
			openRawLeader(rawAhead), "W3"),
		raw("raw page read", "pread of the whole 16 KiB page a record is in", openRawPages, "W7"),
	}
}

// rawFile is a file of records of one size, one after the other, and nothing
// else: the floor.
type rawFile struct {
	mode       rawMode
	deferred   bool
	recordSize int
	file       *os.File

	mu      sync.Mutex
	size    int64  // bytes with blocks behind them; 0 when the file grows
	offset  int64  // where the next write goes
	count   uint64 // records committed
	wrapped bool   // the oldest records are overwritten
	gather  []byte // records not yet written, at most gatherSize when deferred
}

func openRaw(mode rawMode) func(Options) (Store, error) {
	return func(o Options) (Store, error) { return newRawFile(mode, o) }
}

func newRawFile(mode rawMode, o Options) (*rawFile, error) {
	f, err := os.OpenFile(filepath.Join(o.Dir, "raw.log"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	r := &rawFile{mode: mode, deferred: o.Mode == Deferred, recordSize: o.RecordSize, file: f}
	size := roundUp(o.Capacity+gatherSize, zeroChunk)
	switch mode {
	case rawPrewritten:
		r.size, err = size, prewrite(f, 0, size)
	case rawAhead:
		r.size, err = zeroMore, prewrite(f, 0, zeroMore)
	case rawFallocated:
		r.size, err = size, unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, closeWith(err, f)
	}
	return r, nil
}

// zeros are what a file is filled with.
var zeros [zeroChunk]byte

// prewrite fills f with zeros between two multiples of zeroChunk.
func prewrite(f *os.File, from, to int64) error {
	for off := from; off < to; off += zeroChunk {
		if _, err := f.WriteAt(zeros[:], off); err != nil {
			return err
		}
	}
	return nil
}

// Commit writes a group, and syncs it unless deferred.
func (r *rawFile) Commit(group [][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count += uint64(len(group))
	if !r.deferred && len(group) == 1 {
		return r.writeSync(group[0])
	}
	for _, record := range group {
		r.gather = append(r.gather, record...)
	}
	if !r.deferred {
		err := r.writeSync(r.gather)
		r.gather = r.gather[:0]
		return err
	}
	if len(r.gather) < gatherSize {
		return nil
	}
	return r.flush()
}

// flush hands the gathered records to the kernel. The caller holds mu.
func (r *rawFile) flush() error {
	err := r.write(r.gather)
	r.gather = r.gather[:0]
	return err
}

func (r *rawFile) writeSync(b []byte) error {
	if err := r.write(b); err != nil {
		return err
	}
	return unix.Fdatasync(int(r.file.Fd()))
}

func (r *rawFile) write(b []byte) error {
	if err := r.makeRoom(int64(len(b))); err != nil {
		return err
	}
	_, err := r.file.WriteAt(b, r.offset)
	r.offset += int64(len(b))
	return err
}

// makeRoom gives the next write its blocks: more zeros are written ahead, a
// fallocated file is extended, as a new segment would, and a pre-written one
// starts over.
func (r *rawFile) makeRoom(n int64) error {
	if r.size == 0 || r.offset+n <= r.size {
		return nil
	}
	switch r.mode {
	case rawAhead:
		from := r.size
		r.size = roundUp(r.offset+n+zeroMore, zeroChunk)
		return prewrite(r.file, from, r.size)
	case rawFallocated:
		err := unix.Fallocate(int(r.file.Fd()), 0, r.size, fallocateMore)
		r.size += fallocateMore
		return err
	}
	r.offset, r.wrapped = 0, true
	return nil
}

// Sync writes what is gathered and makes the file durable.
func (r *rawFile) Sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.flush(); err != nil {
		return err
	}
	return unix.Fdatasync(int(r.file.Fd()))
}

// Replay reads the file in chunks and sums each record, with the sum Tidemark
// verifies its own with: the least a checked replay can cost.
func (r *rawFile) Replay(visit func(record []byte)) error {
	if r.wrapped {
		return ErrWrapped
	}
	return replayRaw(r.file, r.recordSize, r.count, visit)
}

func replayRaw(f io.ReaderAt, recordSize int, count uint64, visit func(record []byte)) error {
	buf := make([]byte, max(1, readChunk/recordSize)*recordSize)
	end := int64(count) * int64(recordSize)
	var sum uint64
	for off := int64(0); off < end; {
		chunk := buf[:min(int64(len(buf)), end-off)]
		if _, err := f.ReadAt(chunk, off); err != nil {
			return fmt.Errorf("replay raw file at offset %d: %w", off, err)
		}
		off += int64(len(chunk))
		for ; len(chunk) > 0; chunk = chunk[recordSize:] {
			sum += xxh3.Hash(chunk[:recordSize])
			visit(chunk[:recordSize])
		}
	}
	runtime.KeepAlive(sum) // else nobody would need the sums
	return nil
}

// ReadAt is one pread of the record.
func (r *rawFile) ReadAt(n uint64, buf []byte) ([]byte, error) {
	buf = grow(buf, r.recordSize)
	_, err := r.file.ReadAt(buf, int64(n)*int64(r.recordSize))
	return buf, err
}

// Len returns the number of records committed.
func (r *rawFile) Len() uint64 { return r.count }

// Close closes the file.
func (r *rawFile) Close() error { return r.file.Close() }

// rawPages reads records by whole pages, as a paged log has to.
type rawPages struct {
	*rawFile
	page []byte
}

func openRawPages(o Options) (Store, error) {
	r, err := newRawFile(rawPrewritten, o)
	if err != nil {
		return nil, err
	}
	return &rawPages{rawFile: r, page: make([]byte, pageSize)}, nil
}

// ReadAt is one pread of the page that holds the start of the record.
func (r *rawPages) ReadAt(n uint64, _ []byte) ([]byte, error) {
	off := int64(n) * int64(r.recordSize)
	if _, err := r.file.ReadAt(r.page, off&^(pageSize-1)); err != nil {
		return nil, err
	}
	start := int(off & (pageSize - 1))
	return r.page[start:min(pageSize, start+r.recordSize)], nil
}

// verifyRaw sums every record of a closed raw file, each worker its share: the
// least a verification of these bytes can cost.
func verifyRaw(o Options, workers int) error {
	f, err := os.Open(filepath.Join(o.Dir, "raw.log"))
	if err != nil {
		return err
	}
	total := o.Capacity / int64(o.RecordSize)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		from, to := total*int64(i)/int64(workers), total*int64(i+1)/int64(workers)
		wg.Go(func() {
			part := io.NewSectionReader(f, from*int64(o.RecordSize), (to-from)*int64(o.RecordSize))
			errs[i] = replayRaw(part, o.RecordSize, uint64(to-from), func([]byte) {})
		})
	}
	wg.Wait()
	return closeWith(errors.Join(errs...), f)
}

// followPause is how long followers that can only poll wait between looks.
const followPause = 50 * time.Microsecond

// pause sleeps in the kernel: the runtime's own timers round short sleeps up to
// a millisecond in a process that polls for events.
func pause() error {
	ts := unix.NsecToTimespec(int64(followPause))
	if err := unix.Nanosleep(&ts, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}

// followRaw polls a pre-written file for the next record that is not zeros.
func followRaw(o Options, visit func(record []byte) bool) error {
	f, err := os.Open(filepath.Join(o.Dir, "raw.log"))
	if err != nil {
		return err
	}
	buf, zero := make([]byte, o.RecordSize), make([]byte, o.RecordSize)
	for off := int64(0); ; {
		if _, err := f.ReadAt(buf, off); err != nil {
			return closeWith(err, f)
		}
		if bytes.Equal(buf, zero) {
			if err := pause(); err != nil {
				return closeWith(err, f)
			}
			continue
		}
		off += int64(o.RecordSize)
		if !visit(buf) {
			return f.Close()
		}
	}
}
