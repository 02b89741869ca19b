package pagelog

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// logName is the log of every simulated world.
const logName = "log"

// dice is a source of bytes that gives the same ones in every run.
type dice struct{ state uint64 }

func (d *dice) next() uint64 {
	d.state += 0x9E3779B97F4A7C15
	z := d.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Read implements io.Reader.
func (d *dice) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], d.next())
		copy(p[i:], word[:])
	}
	return len(p), nil
}

// reporter is what a simulated world needs of a test, or of a run of rapid.
type reporter interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// sim is a simulated world with one log in it.
type sim struct {
	t    reporter
	fs   *simdisk.FS
	dice dice
	now  atomic.Int64
	dir  func(disk.Dir) disk.Dir // if set, stands between the engine and the disk
}

func newSim(t reporter) *sim { return &sim{t: t, fs: simdisk.New()} }

func (s *sim) env() Env {
	d := s.fs.Dir()
	if s.dir != nil {
		d = s.dir(d)
	}
	return Env{Dir: d, Random: &s.dice, Now: func() int64 { return s.now.Add(1) }, Idle: -1}
}

// small is a log of small pages.
var small = CreateOptions{PageSize: 4096}

func (s *sim) create(c CreateOptions, o Options) *Log {
	s.t.Helper()
	l, err := CreateIn(s.env(), logName, c, o)
	if err != nil {
		s.t.Fatalf("create: %v", err)
	}
	return l
}

func (s *sim) open(o Options) *Log {
	s.t.Helper()
	l, err := OpenIn(s.env(), logName, o)
	if err != nil {
		s.t.Fatalf("open: %v", err)
	}
	return l
}

// refused opens the log for writing and wants the error, and the file as it
// was.
func (s *sim) refused(o Options, want error) error {
	s.t.Helper()
	before, ops := s.fs.Hash(), 0
	s.fs.Before(func(op simdisk.Op) {
		if op.Kind != simdisk.OpSyncDir { // syncing a directory changes no file
			ops++
		}
	})
	l, err := OpenIn(s.env(), logName, o)
	s.fs.Before(nil)
	if err == nil {
		_ = l.Close()
	}
	if !errors.Is(err, want) {
		s.t.Fatalf("open: %v, want %v", err, want)
	}
	if s.fs.Hash() != before || ops != 0 {
		s.t.Fatalf("a refused open changed the file:\n%s", s.fs.Log())
	}
	return err
}

func (s *sim) reader(o ReaderOptions) *Reader {
	s.t.Helper()
	r, err := OpenReaderIn(s.env(), logName, o)
	if err != nil {
		s.t.Fatalf("open reader: %v", err)
	}
	return r
}

// bytes returns the log file as it is.
func (s *sim) bytes() []byte {
	s.t.Helper()
	b, err := s.fs.ReadFile(logName)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// put makes b the log file, durable at once.
func (s *sim) put(b []byte) {
	s.fs.Kill()
	s.fs.WriteFile(logName, b)
}

// flip changes bits of one byte of the log file.
func (s *sim) flip(off int64, mask byte) {
	b := s.bytes()
	b[off] ^= mask
	s.put(b)
}

// batchOf makes a batch of the records.
func batchOf(records ...[]byte) *Batch {
	var b Batch
	for _, r := range records {
		b.Append(r)
	}
	return &b
}

// completeOnly makes a batch that asks for no sync.
func completeOnly(records ...[]byte) *Batch {
	b := batchOf(records...)
	b.CompleteOnly = true
	return b
}

// commit commits records durably.
func commit(t testing.TB, l *Log, records ...[]byte) Commit {
	t.Helper()
	c, err := l.Commit(context.Background(), batchOf(records...))
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return c
}

// complete commits records without a sync.
func complete(t testing.TB, l *Log, records ...[]byte) Commit {
	t.Helper()
	c, err := l.Commit(context.Background(), completeOnly(records...))
	if err != nil {
		t.Fatalf("complete-only commit: %v", err)
	}
	return c
}

// payload returns n bytes that depend on seed and hold no zero byte.
func payload(seed, n int) []byte {
	d := dice{state: uint64(seed) * 0x1000193}
	b := make([]byte, n)
	_, _ = d.Read(b)
	for i := range b {
		b[i] |= 1
	}
	return b
}

// contents reads the commits after a revision: the records of each, joined by
// a bar. err is what ended the iteration.
func contents(r *Reader, after uint64) (commits []string, err error) {
	for g, err := range r.Commits(after) {
		if err != nil {
			return commits, err
		}
		var text strings.Builder
		for rec, err := range g.Records() {
			if err != nil {
				return commits, err
			}
			text.WriteString(string(rec.Data) + "|")
		}
		commits = append(commits, text.String())
		after++
		if g.Revision != after {
			return commits, errors.New("revisions are not dense")
		}
	}
	return commits, nil
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}
