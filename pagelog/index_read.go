package pagelog

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// Reading runs. A block is read by itself and checked by its own sum; the group
// around it was checked when history was walked, or never will be.

// pieceBody is where in the body of its group the first block of a piece lies.
const pieceBody = frame.RecordHeaderSize + checkpoint.PieceHeader

// runReader reads blocks of runs. It belongs to one goroutine.
type runReader struct {
	file   io.ReaderAt
	geo    *frame.Geometry
	blocks uint64 // read so far
	buf    []byte
}

// body reads n bytes of the body of the group that starts at start, from off
// on, without the page headers. The result is valid until the next call.
func (s *runReader) body(start, off, n int64) ([]byte, error) {
	page := s.geo.PageSize()
	from, to := s.geo.End(start, off), s.geo.End(start, off+n)
	if from%page == 0 {
		from += frame.PageHeaderSize
	}
	if from <= 0 || to <= from {
		return nil, frame.ErrField
	}
	s.buf = slices.Grow(s.buf[:0], int(to-from))[:to-from]
	if got, err := s.file.ReadAt(s.buf, from); got < len(s.buf) {
		if err == nil || errors.Is(err, io.EOF) {
			return nil, errEnd
		}
		return nil, fmt.Errorf("read at offset %d: %w", from, err)
	}
	have := min(int64(len(s.buf)), page-from%page)
	for at := have; at < int64(len(s.buf)); at += page {
		have += int64(copy(s.buf[have:], s.buf[at+frame.PageHeaderSize:min(at+page, int64(len(s.buf)))]))
	}
	return s.buf[:have], nil
}

// record reads the first record of the group that starts at start and has a
// body of length bytes.
func (s *runReader) record(start, length int64) ([]byte, error) {
	head, err := s.body(start, 0, frame.RecordHeaderSize)
	if err != nil {
		return nil, err
	}
	size := frame.RecordSize(frame.StoredLength(head))
	if size > length {
		return nil, frame.ErrField
	}
	return s.body(start, 0, size)
}

// damaged says that a block of a run cannot be had.
func (r *run) damaged(extent int, number uint32, err error) error {
	return fmt.Errorf("%w: block %d of run %d, in the group at offset %d: %w",
		ErrIndexDamaged, number, r.Number, r.Extents[extent].Offset, err)
}

// block reads a block by its number in the run.
func (s *runReader) block(r *run, number uint32) (checkpoint.Block, error) {
	i, ok := slices.BinarySearch(r.starts, number)
	if !ok {
		i--
	}
	s.blocks++
	b, err := s.body(r.Extents[i].Offset, pieceBody+int64(number-r.starts[i])*checkpoint.BlockSize, checkpoint.BlockSize)
	var k checkpoint.Block
	if err == nil {
		k, err = checkpoint.DecodeBlock(b, r.Number, number)
	}
	if err != nil {
		return k, r.damaged(i, number, err)
	}
	return k, nil
}

// extent reads all entries of one extent, appended to dst.
func (s *runReader) extent(dst []checkpoint.Entry, r *run, i int) ([]checkpoint.Entry, error) {
	x := r.Extents[i]
	b, err := s.body(x.Offset, pieceBody, int64(x.Blocks)*checkpoint.BlockSize)
	if err != nil {
		return dst, r.damaged(i, r.starts[i], err)
	}
	for j := range x.Blocks {
		k, err := checkpoint.DecodeBlock(b[j*checkpoint.BlockSize:][:checkpoint.BlockSize], r.Number, r.starts[i]+j)
		if err != nil {
			return dst, r.damaged(i, r.starts[i]+j, err)
		}
		for n := range k.Len {
			dst = append(dst, k.At(n))
		}
	}
	return dst, nil
}

// all reads all entries of a run.
func (s *runReader) all(r *run) ([]checkpoint.Entry, error) {
	var entries []checkpoint.Entry // grows by what is read, not by what a checkpoint claims
	var err error
	for i := range r.Extents {
		if entries, err = s.extent(entries, r, i); err != nil {
			return nil, err
		}
	}
	if uint64(len(entries)) != r.Entries {
		return nil, r.damaged(0, 0, frame.ErrField)
	}
	return entries, nil
}

// guess returns the number of the block in which the first entry with this
// hash should be, if there is one.
func (r *run) guess(h checkpoint.Hash) uint32 {
	prefix := h.Prefix()
	i, _ := slices.BinarySearchFunc(r.Extents, prefix, func(x checkpoint.Extent, prefix uint64) int {
		if x.First < prefix {
			return -1
		}
		return 1
	})
	if i--; i < 0 {
		return 0
	}
	return r.starts[i] + r.Guess(i, r.starts[i], prefix)
}

// find visits the entries of a run with this hash, newest first, until visit
// returns false; it then returns false, too.
func (s *runReader) find(r *run, h checkpoint.Hash, visit func(e checkpoint.Entry) bool) (goOn bool, err error) {
	if r.keys != nil {
		for i := sortedFind(r.keys, h); i < len(r.keys) && r.keys[i].Hash == h; i++ {
			if !visit(r.keys[i]) {
				return false, nil
			}
		}
		return true, nil
	}
	if r.err != nil {
		return false, r.err
	}
	number, k, at, err := s.first(r, h)
	for ahead := 0; err == nil; {
		for ; at < k.Len; at++ {
			e := k.At(at)
			if e.Hash != h {
				return true, nil
			}
			if !visit(e) {
				return false, nil
			}
		}
		if k.Next > h.Prefix() || number+1 >= r.Blocks() {
			return true, nil
		}
		if ahead++; ahead > 2 && k.At(k.Len-1).Hash != h {
			return false, r.damaged(0, number, errMisplaced)
		}
		number++
		if k, err = s.block(r, number); err == nil {
			at = k.Search(h)
		}
	}
	return false, err
}

// first returns the block and the place in it where the first entry with this
// hash is, or would be. The guess is right to within one block, except where
// one hash fills several.
func (s *runReader) first(r *run, h checkpoint.Hash) (number uint32, k checkpoint.Block, at int, err error) {
	number = r.guess(h)
	if k, err = s.block(r, number); err != nil {
		return number, k, 0, err
	}
	at = k.Search(h)
	for steps := 0; at == 0 && number > 0; steps++ {
		if e := k.At(0); e.Hash == h && !k.Continues {
			return number, k, 0, nil
		} else if e.Hash != h && steps > 0 {
			return number, k, 0, r.damaged(0, number, errMisplaced)
		}
		number--
		if k, err = s.block(r, number); err != nil {
			return number, k, 0, err
		}
		at = k.Search(h)
	}
	return number, k, at, nil
}

var errMisplaced = errors.New("a block is not where it must be")

// load reads what of the index is kept in memory. What cannot be read is noted
// in the run it concerns.
func (v *levels) load(s *runReader) {
	for i := range 2 {
		l := &v.all[i]
		if entriesOf(l.incoming) > mostInRAM {
			continue
		}
		for _, r := range l.incoming {
			r.keys, r.err = s.all(r)
		}
	}
	for i := range v.all {
		l := &v.all[i]
		if l.building == nil {
			continue
		}
		k, err := s.block(l.building, l.building.Blocks()-1)
		if err != nil || !l.merging() {
			l.building = nil // it is begun again
			continue
		}
		l.last = k.At(k.Len - 1)
	}
}
