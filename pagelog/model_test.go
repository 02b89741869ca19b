package pagelog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// model is what a log is to its users: a list of commits, of which so many are
// safe. Everything else is the engine's business.
type model struct {
	commits []string
	safe    int // what no crash may take
}

// machine runs the engine beside the model.
type machine struct {
	*rapid.T
	model
	s        *sim
	l        *Log
	opts     Options
	poisoned bool
	faulty   bool
	safeEnd  int64
	readers  [2]*Reader // complete and durable
	seen     [2]int
	serial   int
	backup   []byte // a copy of the file, and what the model was
	saved    model
}

func (m *machine) batch(t *rapid.T) (*Batch, string) {
	var b Batch
	var text strings.Builder
	for range rapid.IntRange(1, 3).Draw(t, "records") {
		m.serial++
		p := payload(m.serial, rapid.SampledFrom([]int{0, 1, 20, 368, 376, 377, 3952, 3960, 3961, 9000}).Draw(t, "size"))
		b.Append(p)
		text.WriteString(string(p) + "|")
	}
	b.CompleteOnly = rapid.Bool().Draw(t, "complete-only")
	return &b, text.String()
}

// outcome takes in how a commit ended, n-th from the end of those handed over.
func (m *machine) outcome(c Commit, err error, text string) {
	switch {
	case m.poisoned:
		if !errors.Is(err, ErrPoisoned) {
			m.Fatalf("a poisoned log says %+v, %v", c, err)
		}
	case err == nil:
		m.commits = append(m.commits, text)
		if c.Revision != uint64(len(m.commits)) {
			m.Fatalf("commit %d became %+v", len(m.commits), c)
		}
		if c.Durable {
			m.promise(len(m.commits))
		}
	case !m.faulty:
		m.Fatalf("with nothing broken: %v", err)
	case errors.Is(err, ErrUncertain): // there or not; opening decides
		m.commits, m.poisoned = append(m.commits, text), true
	}
}

func (m *machine) promise(n int) {
	_, durable, _ := m.l.points()
	m.safe, m.safeEnd = max(m.safe, n), max(m.safeEnd, durable.end)
}

// reopen opens the log and lets it say how many of the commits that were not
// safe are there.
func (m *machine) reopen() {
	if m.s.fs.Kill(); m.faulty { // a clone has no faults waiting
		m.s.fs = m.s.fs.Clone()
	}
	m.faulty, m.poisoned = false, false
	m.s.fs.Capacity = 1 << 40
	m.l = m.s.open(m.opts)
	got, err := contents(m.l.Reader, 0)
	if err != nil || len(got) < m.safe || len(got) > len(m.commits) || !slices.Equal(got, m.commits[:len(got)]) {
		m.Fatalf("%d commits of %d, %d were safe, %v", len(got), len(m.commits), m.safe, err)
	}
	m.commits = m.commits[:len(got)]
	m.promise(len(got))
	for i := range m.readers {
		m.readers[i], m.seen[i] = m.s.reader(ReaderOptions{Durable: i == 1}), 0
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.check,
		"commit": func(t *rapid.T) {
			b, text := m.batch(t)
			c, err := m.l.Commit(ctx0, b)
			m.outcome(c, err, text)
		},
		"sync": func(*rapid.T) {
			n := len(m.commits)
			switch err := m.l.Sync(ctx0); {
			case err == nil && !m.poisoned:
				m.promise(n)
			case err == nil || !m.faulty && !m.poisoned:
				m.Fatalf("sync: %v", err)
			default:
				m.poisoned = true
			}
		},
		"checkpoint": func(t *rapid.T) {
			if len(m.commits) == 0 || m.poisoned || m.faulty {
				return
			}
			rev := uint64(rapid.IntRange(1, len(m.commits)).Draw(t, "revision"))
			if err := m.l.Checkpoint(ctx0, rev, fmt.Append(nil, rev)); err != nil {
				m.Fatalf("checkpoint: %v", err)
			}
			m.promise(len(m.commits))
			if got, data, err := m.l.LastCheckpoint(); err != nil || got != rev || string(data) != fmt.Sprint(rev) {
				m.Fatalf("checkpoint at %d reads as %d, %q, %v", rev, got, data, err)
			}
		},
		"close": func(*rapid.T) {
			err := m.l.Close()
			if err == nil {
				m.safe = len(m.commits)
			} else if !m.faulty && !m.poisoned {
				m.Fatalf("close: %v", err)
			}
			m.reopen()
		},
		"kill": func(*rapid.T) { m.reopen() },
		"power cut": func(t *rapid.T) {
			img := m.s.fs.RandomImage(simdisk.ImageOptions{
				Mode: simdisk.Both, Garbage: true,
				Protected: func(name string, off int64) bool { return name == logName && off >= 16384 && off < m.safeEnd },
			}, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
			m.s.fs = img.Clone()
			m.reopen()
		},
		"fault": func(t *rapid.T) {
			m.s.fs.Inject(simdisk.Fault{
				Kind: rapid.SampledFrom([]simdisk.Kind{simdisk.OpWrite, simdisk.OpSync}).Draw(t, "kind"),
				Nth:  rapid.IntRange(1, 3).Draw(t, "nth"), Part: rapid.IntRange(0, 700).Draw(t, "part"),
			})
			m.faulty = true
		},
		"full":  func(*rapid.T) { m.s.fs.Capacity, m.faulty = int64(len(m.s.bytes())+511)/512*512, true },
		"room":  func(*rapid.T) { m.s.fs.Capacity = 1 << 40 },
		"clock": func(t *rapid.T) { m.s.now.Store(rapid.Int64().Draw(t, "now")) },
		"copy": func(*rapid.T) {
			m.backup, m.saved = m.s.bytes(), model{slices.Clone(m.commits), m.safe}
		},
		"restore": func(*rapid.T) { // cursors from after the copy must not be taken for ones of this history
			if m.backup == nil {
				return
			}
			later, commits := m.l.Cursor(m.l.Head()), m.commits
			m.s.put(m.backup)
			m.s.fs = m.s.fs.Clone()
			m.model, m.safeEnd, m.backup = m.saved, 0, nil
			m.reopen()
			n := int(later.Revision)
			for _, err := range m.l.From(later) {
				same := n <= len(m.commits) && slices.Equal(commits[:n], m.commits[:n])
				if !same && !errors.Is(err, cursor.ErrFuture) && !errors.Is(err, cursor.ErrDiverged) || same && err != nil {
					m.Fatalf("a cursor from after the copy, same history %v: %v", same, err)
				}
				break
			}
		},
	}
}

// check holds everything that can be read against the model.
func (m *machine) check(*rapid.T) {
	if !m.poisoned {
		if h := int(m.l.Head().Revision); h != len(m.commits) {
			m.Fatalf("head %d, %d commits", h, len(m.commits))
		}
	}
	for i, r := range m.readers {
		got, err := contents(r, 0)
		if err != nil || len(got) < m.seen[i] || len(got) > len(m.commits) || !slices.Equal(got, m.commits[:len(got)]) {
			m.Fatalf("reader %d: %d commits, %d before, %d were made, %v", i, len(got), m.seen[i], len(m.commits), err)
		}
		m.seen[i] = len(got)
		if _, durable, _ := m.l.points(); i == 1 && len(got) > int(durable.rev) {
			m.Fatalf("a durable reader sees %d commits of %d", len(got), durable.rev)
		}
	}
}

// TestL23_Model runs random lives of a log: C21, C10, C15, L1, L14, L18, L43,
// L44. A failure prints how to run it again.
func TestL23_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{T: t, s: newSim(t)}
		m.opts.ZeroAhead = rapid.SampledFrom([]ZeroAhead{ZeroAheadOn, ZeroAheadOff}).Draw(t, "zeros")
		m.opts.CheckpointEvery = rapid.SampledFrom([]int64{-1, 0, 1, 2000}).Draw(t, "checkpoints")
		align := rapid.SampledFrom([]int{8, 512, 4096}).Draw(t, "align")
		m.l = m.s.create(CreateOptions{PageSize: 4096, Align: align}, m.opts)
		m.reopen()
		t.Repeat(m.actions())
	})
}
