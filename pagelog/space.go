package pagelog

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// space sees to it that a group write cannot run out of room: it zeroes or
// reserves the bytes first, where failing is a rejection. It belongs to the
// writing role.
//
// Zeros ahead of the head are what makes a durable commit one data write and
// one flush: the sync that carries the group has no new blocks and no new size
// to record. They are written in small pieces, because a large one makes a
// large folio of the page cache, and every later small write then pays for it.
type space struct {
	file      disk.File
	zeroAhead bool
	most      int64        // the file's maximum size, which no write ahead exceeds; 0: none
	zeroed    int64        // this incarnation wrote zeros or groups up to here
	reserved  int64        // writing below cannot run out of space
	size      atomic.Int64 // the file has at least these bytes; equals reserved
}

const (
	zeroChunk    = 64 << 10  // bytes of one write of zeros
	zeroMore     = 512 << 10 // the most that is zeroed at a time
	zeroShare    = 8         // and no more than the log's size divided by this
	zeroMost     = 256 << 10 // larger writes reserve instead of zeroing
	reserveChunk = 4 << 20   // bytes reserved at a time for large writes
)

var zeros [zeroChunk]byte

// reserve makes room for a write of [from, to). After an error the file may
// have grown by zeros, and nothing else changed.
func (s *space) reserve(from, to int64) error {
	defer func() { s.size.Store(s.reserved) }()
	if to > s.reserved { // what was cut off must not be written over
		info, err := s.file.Stat()
		if err != nil {
			return err
		}
		if info.Size < s.reserved {
			return fmt.Errorf("%w: it has %d bytes of %d", ErrReplaced, info.Size, s.reserved)
		}
	}
	if to-from > zeroMost {
		return s.allocate(from, to)
	}
	if to <= s.zeroed {
		return nil
	}
	if to <= s.reserved && !s.zeroAhead {
		s.zeroed = to
		return nil
	}
	if s.zeroAhead {
		ahead := s.upTo(to, min(max(to/zeroShare/zeroChunk, 1)*zeroChunk, zeroMore))
		if err := s.zero(from, ahead); !errors.Is(err, disk.ErrNoSpace) {
			return err
		}
	}
	return s.zero(from, to)
}

// upTo returns how far to go when to is needed: to the end of its chunk.
func (s *space) upTo(to, chunk int64) int64 {
	ahead := (to + chunk - 1) / chunk * chunk
	if s.most > 0 {
		ahead = max(to, min(ahead, s.most))
	}
	return ahead
}

// zero writes zeros over [from, to) where none were written yet.
func (s *space) zero(from, to int64) error {
	for at := max(from, s.zeroed); at < to; at = s.zeroed {
		next := min((at/zeroChunk+1)*zeroChunk, to)
		if _, err := s.file.WriteAt(zeros[:next-at], at); err != nil {
			return err
		}
		s.zeroed = next
		s.reserved = max(s.reserved, next)
	}
	return nil
}

// allocate reserves [from, to) and, if there is room, more.
func (s *space) allocate(from, to int64) error {
	if to > s.reserved {
		at := max(from, s.reserved)
		ahead := s.upTo(to, reserveChunk)
		err := s.file.Allocate(at, ahead-at)
		if errors.Is(err, disk.ErrNoSpace) {
			ahead = to
			err = s.file.Allocate(at, ahead-at)
		}
		if err != nil {
			return err
		}
		s.reserved = ahead
	}
	s.zeroed = max(s.zeroed, to)
	return nil
}
