package pagelog

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// A small model of one writer at a time and one reader beside it, explored to
// the end over the real code: every sequence of steps up to a depth, with the
// reader looking after each and at every operation on the disk in between.
//
//   - R1: what the reader sees is a prefix of what was committed, in order, and
//     never less than it saw before;
//   - R2: it sees everything that was acknowledged before it looked, and never
//     says that the log is damaged;
//   - R3: while one writer has the log, a second one is refused, and the one
//     after its end is not.
type readersModel struct {
	s      *sim
	bug    readersBug
	log    *Log
	reader *Reader
	seen   uint64   // by the reader
	hand   []string // committed, in order
	acked  uint64
	looks  int
	err    error
}

// readersBug is what the driver does wrong.
type readersBug int

const (
	bugShrinks  readersBug = iota + 1 // cuts acknowledged commits off the file: R1, R2
	bugNoLock                         // forgets that there is a writer: R3
	bugRewrites                       // gives the reader another history: R1
)

var readersWords = []string{"commit", "complete", "sync", "close", "kill", "open", "second"}

func (m *readersModel) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// look reads on from where the reader was.
func (m *readersModel) look() {
	m.looks++
	got, err := contents(m.reader, m.seen)
	if err != nil {
		m.fail("R2: the reader, which saw revision %d, says: %v", m.seen, err)
		return
	}
	for _, c := range got {
		if m.seen >= uint64(len(m.hand)) || c != m.hand[m.seen] {
			m.fail("R1: revision %d reads as %q, of %q", m.seen+1, c, m.hand)
			return
		}
		m.seen++
	}
	if head, err := m.reader.Head(); err != nil || head.Revision < m.seen {
		m.fail("R1: the reader saw revision %d, and now the head is %d, %v", m.seen, head.Revision, err)
	}
	if m.seen < m.acked {
		m.fail("R2: %d commits are acknowledged, the reader sees %d", m.acked, m.seen)
	}
}

func (m *readersModel) commit(word string) {
	text := fmt.Sprintf("%s %d", word, len(m.hand))
	m.hand = append(m.hand, text+"|")
	b := batchOf([]byte(text))
	b.CompleteOnly = word == "complete"
	if _, err := m.log.Commit(ctx0, b); err != nil {
		m.fail("commit: %v", err)
	}
	m.acked = uint64(len(m.hand)) // complete is visible at once
}

func (m *readersModel) step(word string) (ok bool) {
	isOpen := m.log != nil
	switch word {
	case "commit", "complete":
		if isOpen {
			m.commit(word)
		}
		return isOpen
	case "sync":
		if isOpen {
			if err := m.log.Sync(ctx0); err != nil {
				m.fail("sync: %v", err)
			}
		}
		return isOpen
	case "close":
		if isOpen {
			if err := m.log.Close(); err != nil {
				m.fail("close: %v", err)
			}
			m.log = nil
		}
		return isOpen
	case "kill": // of the writer alone: the reader lives in another process
		if isOpen {
			_ = m.log.file.Close()
			m.log = nil
		}
		return isOpen
	case "open":
		if !isOpen {
			m.damage()
			var err error
			if m.log, err = OpenIn(m.s.env(), logName, Options{ZeroAhead: ZeroAheadOff}); err != nil {
				m.fail("R3: open: %v", err)
			}
		}
		return !isOpen
	}
	if isOpen && m.bug == bugNoLock {
		_ = m.log.file.Close()
	}
	l, err := OpenIn(m.s.env(), logName, Options{ZeroAhead: ZeroAheadOff})
	switch {
	case isOpen && !errors.Is(err, ErrLocked):
		m.fail("R3: a second writer beside the first: %v", err)
	case !isOpen && err != nil:
		m.fail("R3: a writer after the end of the last: %v", err)
	case !isOpen:
		_ = l.Close()
	}
	return true
}

// damage is the driver's bugs that change the file between two writers.
func (m *readersModel) damage() {
	b := m.s.bytes()
	if len(m.hand) == 0 {
		return
	}
	switch m.bug {
	case bugShrinks:
		m.s.fs.WriteFile(logName, b[:16384+32])
	case bugRewrites:
		other := newSim(m.s.t)
		l := other.create(small, Options{ZeroAhead: ZeroAheadOff})
		for range m.hand {
			if _, err := l.Commit(ctx0, batchOf([]byte("something else"))); err != nil {
				m.fail("commit: %v", err)
			}
		}
		m.s.fs.WriteFile(logName, other.bytes())
	}
}

// run runs one line of words; ok is false if one of them makes no sense.
func (m *readersModel) run(t *testing.T, words []string) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			m.fail("panic: %v", p)
		}
	}()
	m.s = newSim(t)
	m.log = m.s.create(small, Options{ZeroAhead: ZeroAheadOff})
	m.reader = m.s.reader(ReaderOptions{})
	looking := false
	m.s.fs.Before(func(simdisk.Op) {
		if !looking {
			looking = true
			acked := m.acked
			m.look()
			m.acked, looking = acked, false
		}
	})
	for _, w := range words {
		if !m.step(w) {
			return false
		}
		if m.look(); m.err != nil {
			return true
		}
	}
	return true
}

// TestReaders_Model explores the model, and finds the bugs of the driver.
func TestReaders_Model(t *testing.T) {
	depth := 5
	if testing.Short() {
		depth = 4
	}
	runs, looks, err := exploreReaders(t, 0, depth)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("depth %d: %d lines, %d looks", depth, runs, looks)
	for bug := bugShrinks; bug <= bugRewrites; bug++ {
		if _, _, err := exploreReaders(t, bug, 4); err == nil {
			t.Errorf("bug %d of the driver is not found", bug)
		} else {
			t.Logf("bug %d: %v", bug, err)
		}
	}
}

func exploreReaders(t *testing.T, bug readersBug, depth int) (runs, looks int, err error) {
	lines := [][]string{nil}
	for range depth {
		var longer [][]string
		for _, line := range lines {
			for _, w := range readersWords {
				next := append(slices.Clone(line), w)
				m := readersModel{bug: bug}
				if !m.run(t, next) {
					continue
				}
				runs, looks = runs+1, looks+m.looks
				if m.err != nil {
					return runs, looks, fmt.Errorf("%q: %w", next, m.err)
				}
				longer = append(longer, next)
			}
		}
		lines = longer
	}
	return runs, looks, nil
}
