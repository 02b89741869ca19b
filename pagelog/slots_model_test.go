package pagelog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// A small model of the slots, explored to the end over the real code: every
// sequence of slot writes, syncs, failing syncs, deaths of the process and
// losses of power up to a depth, with dirty sectors that reach the disk, or do
// not, or end as garbage, at any time. After each step, on every disk that is
// possible then:
//
//   - P1: one slot holds;
//   - P2: the newest slot that holds names no less than one that was synced;
//   - P3: no slot names what was not durable when it was written;
//   - P4: after a failed sync nothing is written until the log is opened again.
//
// The driver can be given one bug for each of them, which the search must find.
type slotModel struct {
	fs     *simdisk.FS
	file   disk.File
	slots  slots
	end    int64 // what is durable: what may be named
	synced int64 // what a slot that is certainly on disk names
	named  int64 // what the last slot written names
	dead   bool  // a sync failed
	path   string
}

// slotBug is what the driver does wrong.
type slotBug int

const (
	noBug      slotBug = iota
	bugForgets         // takes a slot for synced when it is written: P1
	bugSwaps           // writes over the newest: P2
	bugEager           // names what is not durable yet: P3
	bugRetries         // syncs again after a failed sync, and believes it: P4
)

type slotSearch struct {
	bug    slotBug
	images int
	states int
	err    error
	seen   map[uint64]bool
}

func newSlotModel(t *testing.T) *slotModel {
	s := newSim(t)
	closeLog(t, s.create(small, Options{}))
	s.fs.Kill()
	m := &slotModel{fs: s.fs, end: 16384}
	if err := m.reopen(); err != nil {
		t.Fatal(err)
	}
	return m
}

// reopen does what opening a log for writing does to the slots.
func (m *slotModel) reopen() error {
	m.fs.Kill()
	f, err := m.fs.Dir().Open(logName, disk.ReadWrite)
	if err != nil {
		return err
	}
	h, err := readHeader(f)
	if err != nil {
		return err
	}
	m.slots = slots{now: func() int64 { return 0 }}
	m.file, m.dead = f, false
	m.named = h.durableEnd()
	p := frame.Place{Offset: m.named}
	if err := m.slots.open(f, h, 1, p); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	m.slots.synced()
	m.synced = m.named
	m.end = max(m.end, m.named)
	return nil
}

// fork is the same state on a disk of its own.
func (m *slotModel) fork(word string) *slotModel {
	c := *m
	c.path += " " + word
	c.fs = m.fs.Clone()
	f, err := c.fs.Dir().Open(logName, disk.ReadWrite)
	if err != nil {
		panic(err)
	}
	c.file, c.slots.file = f, f
	return &c
}

// step does one thing; ok is false if it makes no sense here.
func (m *slotModel) step(word string, bug slotBug) (ok bool, err error) {
	switch word {
	case "grow": // commits were made durable, which is no matter of slots
		m.end += 512
		return m.end < 16384+3*512, nil
	case "write":
		if m.dead {
			return false, nil
		}
		to := m.end
		if bug == bugEager {
			to += 512
		}
		if bug == bugSwaps {
			m.slots.disk[0].number, m.slots.disk[1].number = m.slots.disk[1].number, m.slots.disk[0].number
		}
		m.named = to
		err := m.slots.name(frame.Place{Offset: to})
		if bug == bugForgets {
			m.slots.synced()
		}
		return true, err
	case "sync", "fail":
		if m.dead {
			return false, nil
		}
		if word == "fail" {
			m.fs.Inject(simdisk.Fault{Kind: simdisk.OpSync})
		}
		err := m.file.Sync()
		if err != nil && bug == bugRetries {
			err = m.file.Sync()
		}
		if m.dead = err != nil; !m.dead {
			m.slots.synced()
			m.synced = m.named
		}
		return true, nil
	case "kill":
		return true, m.reopen()
	}
	return false, errors.New("no such word")
}

// check looks at every disk that is possible now.
func (m *slotModel) check(s *slotSearch, each func(img *simdisk.FS)) error {
	var failed error
	opts := simdisk.ImageOptions{Mode: simdisk.Both, MaxBits: 12, Garbage: true, Protected: func(_ string, off int64) bool {
		return off < frame.SlotOffsetA
	}}
	m.fs.EachImage(opts, func(img *simdisk.FS) bool {
		s.images++
		f, err := img.Dir().Open(logName, disk.ReadOnly)
		if err != nil {
			failed = err
			return false
		}
		h, err := readHeader(f)
		if err != nil {
			failed = err
			return false
		}
		switch newest := h.newest(); {
		case newest == nil:
			failed = errors.New("P1: no slot holds")
		case newest.Durable.Offset < m.synced:
			failed = fmt.Errorf("P2: the newest slot names %d, one that was synced %d", newest.Durable.Offset, m.synced)
		case h.durableEnd() > m.end:
			failed = fmt.Errorf("P3: a slot names %d, durable is %d", h.durableEnd(), m.end)
		}
		if failed == nil && each != nil {
			each(img)
		}
		return failed == nil
	})
	return failed
}

// explore tries every continuation of m.
func (s *slotSearch) explore(m *slotModel, depth int) {
	if s.err != nil || depth <= 0 {
		return
	}
	for _, word := range []string{"grow", "write", "sync", "fail", "kill"} {
		next := m.fork(word)
		ok, err := next.step(word, s.bug)
		if !ok && err == nil {
			continue
		}
		s.states++
		if err == nil {
			err = next.check(s, nil)
		}
		if err != nil {
			s.err = fmt.Errorf("%s: %w", next.path, err)
			return
		}
		s.explore(next, depth-1)
	}
	s.cut(m, depth)
}

// cut takes the power away and goes on with each disk that was not seen with as
// much left to try.
func (s *slotSearch) cut(m *slotModel, depth int) {
	var disks []*simdisk.FS
	err := m.check(s, func(img *simdisk.FS) {
		key := img.Hash() ^ uint64(m.synced)<<32 ^ uint64(m.end)<<16 ^ uint64(depth)
		if !s.seen[key] {
			s.seen[key] = true
			disks = append(disks, img.Clone())
		}
	})
	if err != nil {
		s.err = fmt.Errorf("%s cut: %w", m.path, err)
		return
	}
	for _, d := range disks {
		next := *m
		next.fs, next.path = d, m.path+" cut"
		if err := next.reopen(); err != nil {
			s.err = fmt.Errorf("%s: %w", next.path, err)
			return
		}
		if next.named < m.synced {
			s.err = fmt.Errorf("%s: opened at %d, %d was synced", next.path, next.named, m.synced)
			return
		}
		s.states++
		s.explore(&next, depth-2)
	}
}

// TestSlots_Model explores the model, and finds every bug of the driver.
func TestSlots_Model(t *testing.T) {
	depth := 7
	if testing.Short() {
		depth = 5
	}
	s := &slotSearch{seen: map[uint64]bool{}}
	s.explore(newSlotModel(t), depth)
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Logf("depth %d: %d states, %d disks", depth, s.states, s.images)
	for _, bug := range []slotBug{bugForgets, bugSwaps, bugEager, bugRetries} {
		s := &slotSearch{bug: bug, seen: map[uint64]bool{}}
		s.explore(newSlotModel(t), depth)
		if s.err == nil {
			t.Errorf("bug %d of the driver is not found at depth %d", bug, depth)
		}
		t.Logf("bug %d:%v", bug, s.err)
	}
}
