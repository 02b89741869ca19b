package pagelog

import (
	"slices"

	"github.com/tidemark-log/tidemark/checkpoint"
)

// Merging, one piece at a time. Between steps everything that matters is in
// levels: the runs that are merged and what is written of the result. The
// merger only keeps what it read ahead, and may be thrown away at any time.

// pieceEntries is what a step merges: enough for one piece, and one more, so
// that the piece knows what comes next.
const pieceEntries = checkpoint.MaxPieceBlocks*checkpoint.BlockEntries + 1

// merger reads the runs of one level in step.
type merger struct {
	reader runReader
	level  int // 0: nothing is read ahead
	in     []*stream
	out    []checkpoint.Entry // merged and not in a piece yet
	piece  []byte
}

// stream reads one run forward.
type stream struct {
	run    *run
	extent int // the next one to read
	buf    []checkpoint.Entry
	left   []checkpoint.Entry
}

// step merges one piece of level i and has it written. done means that the
// level is merged.
func (m *merger) step(v *levels, i int, place placer) (entries int, err error) {
	l := &v.all[i]
	if m.level != i {
		if err := m.begin(l, i); err != nil {
			return 0, err
		}
	}
	if err := m.fill(); err != nil {
		return 0, err
	}
	done := len(m.out) < pieceEntries
	if len(m.out) > 0 {
		if err := m.put(v, l, done, place); err != nil {
			return 0, err
		}
		entries, done = len(m.piece)/checkpoint.BlockSize*checkpoint.BlockEntries, done && len(m.out) == 0
	}
	if done {
		l.main, l.incoming, l.building = l.building, nil, nil
		m.drop()
		v.settle(i)
	}
	return entries, nil
}

// put cuts a piece off what is merged and adds it to the run being built.
func (m *merger) put(v *levels, l *indexLevel, done bool, place placer) error {
	var next checkpoint.Run
	if l.building == nil {
		next = v.newRun()
	} else {
		next = l.building.Run // extents are only ever appended
	}
	payload, used := next.Piece(m.piece[:0], &l.last, m.out, done)
	m.piece = payload
	start, err := place(payload)
	if err != nil {
		return err
	}
	next.Place(start)
	built := &run{Run: next}
	if l.building != nil {
		built.starts = l.building.starts
	}
	x := next.Extents[len(next.Extents)-1]
	l.building, l.last = built, m.out[used-1]
	built.starts = append(built.starts, next.Blocks()-x.Blocks)
	m.out = m.out[:copy(m.out, m.out[used:])]
	return nil
}

// drop forgets what was read ahead.
func (m *merger) drop() {
	m.level, m.in, m.out = 0, nil, m.out[:0]
	m.piece = nil
}

// begin takes up the merge of a level where it was left.
func (m *merger) begin(l *indexLevel, i int) error {
	m.drop()
	runs := l.incoming
	if l.main != nil {
		runs = append(slices.Clone(runs), l.main)
	}
	for _, r := range runs {
		if r.err != nil && r.keys == nil {
			return r.err
		}
		s := &stream{run: r}
		if err := s.seek(&m.reader, l); err != nil {
			return err
		}
		m.in = append(m.in, s)
	}
	m.level = i
	return nil
}

// seek puts a stream behind the last entry written.
func (s *stream) seek(reader *runReader, l *indexLevel) error {
	if l.building != nil && s.run.keys == nil {
		prefix := l.last.Hash.Prefix()
		at, _ := slices.BinarySearchFunc(s.run.Extents, prefix, func(x checkpoint.Extent, prefix uint64) int {
			if x.First < prefix {
				return -1
			}
			return 1
		})
		s.extent = max(at-1, 0)
	}
	for l.building != nil {
		e, err := s.peek(reader)
		if err != nil || e == nil || e.Compare(&l.last) > 0 {
			return err
		}
		s.left = s.left[1:]
	}
	return nil
}

// peek returns the next entry, nil at the end.
func (s *stream) peek(reader *runReader) (*checkpoint.Entry, error) {
	for len(s.left) == 0 {
		switch {
		case s.run.keys != nil && s.extent == 0:
			s.left, s.extent = s.run.keys, len(s.run.Extents)
		case s.extent >= len(s.run.Extents):
			return nil, nil
		default:
			buf, err := reader.extent(s.buf[:0], s.run, s.extent)
			if err != nil {
				return nil, err
			}
			s.buf, s.left, s.extent = buf, buf, s.extent+1
		}
	}
	return &s.left[0], nil
}

// fill merges until there is enough for a piece.
func (m *merger) fill() error {
	for len(m.out) < pieceEntries {
		var first *checkpoint.Entry
		var from *stream
		for _, s := range m.in {
			e, err := s.peek(&m.reader)
			if err != nil {
				return err
			}
			if e != nil && (first == nil || e.Compare(first) < 0) {
				first, from = e, s
			}
		}
		if first == nil {
			return nil
		}
		if n := len(m.out); n == 0 || m.out[n-1].Compare(first) != 0 {
			m.out = append(m.out, *first)
		}
		from.left = from.left[1:]
	}
	return nil
}
