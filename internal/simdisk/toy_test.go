package simdisk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// bugs are mistakes that the toy log can be built with. The simulator is worth
// something if it finds every one.
type bugs struct {
	noSyncBeforePublish bool
	noDirSync           bool
	noSync              bool
	retriesSync         bool // takes the nil of a second sync for an answer
	noSum               bool // a record is valid if it is complete
	trustsSize          bool // the file ends where its last record does
	adoptsUnsynced      bool // recovery believes what it reads without writing it again
	acksDuringSync      bool // takes a sync to cover what was written while it ran
	noTruncate          bool // recovery leaves a torn end where it is
	readErrorIsTorn     bool // recovery takes a failed read for the end
}

// toy is the smallest log that has something to get wrong: a header, then
// records of one size with a sum each.
type toy struct {
	bugs
	dir  disk.Dir
	file disk.File
	n    int // records
}

const (
	toyHeader = 512
	toyRecord = 200 // bytes: most records share a sector with a neighbour
)

func toyBytes(n int) []byte {
	b := make([]byte, toyRecord)
	for i := range b {
		b[i] = byte(n*31 + i*7 + 1)
	}
	binary.LittleEndian.PutUint32(b, uint32(n+1))
	binary.LittleEndian.PutUint32(b[4:], crc32.ChecksumIEEE(b[8:])^uint32(n))
	return b
}

// isRecord reports whether b is record n. Without the sum that means: it is
// not all zeros and it has the right number.
func (l *toy) isRecord(b []byte, n int) bool {
	if binary.LittleEndian.Uint32(b) != uint32(n+1) {
		return l.trustsSize
	}
	return l.noSum || l.trustsSize || binary.LittleEndian.Uint32(b[4:]) == crc32.ChecksumIEEE(b[8:])^uint32(n)
}

func toyAt(n int) int64 { return toyHeader + int64(n)*toyRecord }

// openToy opens the log, creating it if there is none, and recovers it.
func openToy(s *FS, with bugs) (*toy, error) {
	l := &toy{bugs: with, dir: s.Dir()}
	var err error
	if l.file, err = l.dir.Open("log", disk.ReadWrite); errors.Is(err, fs.ErrNotExist) {
		return l, l.create()
	} else if err != nil {
		return nil, err
	}
	if err := errors.Join(l.file.Lock(), l.dir.Sync()); err != nil {
		return nil, err
	}
	return l, l.recover()
}

func (l *toy) create() (err error) {
	if err := l.dir.Remove("tmp"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.file, err = l.dir.Create("tmp"); err != nil {
		return err
	}
	header := make([]byte, toyHeader)
	copy(header, "toy")
	if _, err := l.file.WriteAt(header, 0); err != nil {
		return err
	}
	if !l.noSyncBeforePublish {
		if err := l.file.Sync(); err != nil {
			return err
		}
	}
	if err := l.dir.Publish(l.file, "log"); err != nil {
		return err
	}
	if !l.noDirSync {
		return l.dir.Sync()
	}
	return nil
}

func (l *toy) recover() error {
	header, b := make([]byte, 3), make([]byte, toyRecord)
	if _, err := l.file.ReadAt(header, 0); err != nil || string(header) != "toy" {
		return fmt.Errorf("toy: header %q, %v", header, err)
	}
	for l.n = 0; ; l.n++ {
		n, err := l.file.ReadAt(b, toyAt(l.n))
		if n < len(b) && errors.Is(err, ErrIO) && !l.readErrorIsTorn {
			return err
		}
		if n < len(b) || !l.isRecord(b, l.n) {
			break
		}
		if !l.adoptsUnsynced {
			if _, err := l.file.WriteAt(b, toyAt(l.n)); err != nil {
				return err
			}
		}
	}
	if !l.noTruncate {
		if err := l.file.Truncate(toyAt(l.n)); err != nil {
			return err
		}
	}
	return l.file.Sync()
}

// append adds a record. It is durable when append returns nil.
func (l *toy) append() error {
	if _, err := l.file.WriteAt(toyBytes(l.n), toyAt(l.n)); err != nil {
		return err
	}
	l.n++
	if l.noSync {
		return nil
	}
	err := l.file.Sync()
	if err != nil && l.retriesSync {
		err = l.file.Sync()
	}
	return err
}

// toyRun drives a toy log and checks what each power cut leaves of it.
type toyRun struct {
	t       *testing.T
	bugs    bugs
	opts    ImageOptions
	fs      *FS
	log     *toy
	acked   int // records that may not be lost
	written int // records that may be found
	nested  bool
	stats   ImageStats
	failure string // the first violation
}

func newToyRun(t *testing.T, with bugs, opts ImageOptions) *toyRun {
	r := &toyRun{t: t, bugs: with, opts: opts, fs: New(), nested: true, stats: ImageStats{Exhaustive: true}}
	r.opts.Protected = func(name string, off int64) bool { return off < toyAt(r.acked) }
	r.fs.Before(func(op Op) { r.cut(op) })
	return r
}

// cut looks at every image of a power cut at this moment.
func (r *toyRun) cut(op Op) {
	if r.failure != "" {
		return
	}
	stats := r.fs.EachImage(r.opts, func(img *FS) bool {
		r.recovers(img, r.nested)
		if r.failure != "" {
			r.failure += "\n" + img.Log()
		}
		return r.failure == ""
	})
	r.stats = r.stats.Add(stats)
}

// recovers opens an image and compares what it finds with what was
// acknowledged; on the way it cuts the power again at every operation of the
// recovery.
func (r *toyRun) recovers(img *FS, again bool) {
	if again {
		opts := ImageOptions{MaxBits: 3, Samples: -1}
		img.Before(func(Op) {
			r.stats = r.stats.Add(img.EachImage(opts, func(second *FS) bool {
				r.recovers(second, false)
				return r.failure == ""
			}))
		})
	}
	l, err := openToy(img, r.bugs)
	switch {
	case err != nil:
		r.failure = fmt.Sprintf("recovery: %v", err)
	case l.n < r.acked:
		r.failure = fmt.Sprintf("%d records of %d acknowledged ones", l.n, r.acked)
	case l.n > r.written:
		r.failure = fmt.Sprintf("%d records, only %d were written", l.n, r.written)
	default:
		r.compares(l)
	}
}

func (r *toyRun) compares(l *toy) {
	b := make([]byte, toyRecord)
	for n := range l.n {
		if _, err := l.file.ReadAt(b, toyAt(n)); err != nil || string(b) != string(toyBytes(n)) {
			r.failure = fmt.Sprintf("record %d is wrong: %v", n, err)
		}
	}
}

// open opens the log as a new process.
func (r *toyRun) open() {
	l, err := openToy(r.fs, r.bugs)
	if err != nil {
		r.failure += fmt.Sprintf("open: %v", err)
		r.t.Log(r.fs.Log())
		return
	}
	r.log = l
	r.acked = max(r.acked, l.n) // what a reader was shown may not vanish either
}

func (r *toyRun) append() error {
	r.written++
	records := r.written
	err := r.log.append()
	if err == nil {
		r.acked = records
	}
	return err
}

// The stories are what happens to a toy log between power cuts.
var stories = map[string]func(r *toyRun){
	"Appends": func(r *toyRun) {
		r.open()
		for range 4 {
			_ = r.append()
		}
	},
	"SyncFails": func(r *toyRun) {
		r.open()
		_ = r.append()
		r.fs.Inject(Fault{Kind: OpSync})
		if r.append() != nil { // poisoned: the process gives up and another takes over
			r.fs.Kill()
			r.written = r.acked + 1
			r.open()
			r.written = r.log.n
		}
		_ = r.append()
		_ = r.append()
	},
	"WriteDuringSync": func(r *toyRun) {
		r.open()
		_ = r.append()
		raced := false
		r.fs.Before(func(op Op) {
			if op.Inside && op.Kind == OpSync && !raced {
				raced = true
				r.written++
				_, _ = r.log.file.WriteAt(toyBytes(r.log.n), toyAt(r.log.n))
			}
			r.cut(op)
		})
		err := r.append()
		r.log.n = r.written
		if err == nil && !r.bugs.acksDuringSync {
			err = r.log.file.Sync()
		}
		if err == nil {
			r.acked = r.written
		}
		_ = r.append()
	},
	"TornEnd": func(r *toyRun) {
		r.open()
		_ = r.append()
		// A process dies half-way through record 1, having written record 2.
		_, _ = r.log.file.WriteAt(toyBytes(1)[:100], toyAt(1))
		_, _ = r.log.file.WriteAt(toyBytes(2), toyAt(2))
		r.fs.Kill()
		r.open()
		_ = r.append()
		r.fs.Kill()
		r.open()
	},
	"ReadFails": func(r *toyRun) {
		r.open()
		_ = r.append()
		_ = r.append()
		r.fs.Kill()
		r.fs.Inject(Fault{Kind: OpRead, Nth: 3})
		if _, err := openToy(r.fs, r.bugs); !errors.Is(err, ErrIO) && !r.bugs.readErrorIsTorn {
			r.failure = fmt.Sprintf("open with a failing read: %v", err)
		}
	},
}

// play runs a story and looks at the end of it as well.
func play(t *testing.T, story string, with bugs, opts ImageOptions) *toyRun {
	r := newToyRun(t, with, opts)
	stories[story](r)
	r.cut(Op{})
	return r
}

var toyOptions = map[string]ImageOptions{
	"Strict":         {MaxBits: 8, Samples: 50},
	"Journal":        {MaxBits: 8, Samples: 50, Mode: Journal},
	"StrictGarbage":  {MaxBits: 8, Samples: 50, Garbage: true},
	"JournalGarbage": {MaxBits: 8, Samples: 50, Garbage: true, Mode: Journal},
}

func TestToy_SurvivesEveryPowerCut(t *testing.T) {
	for story := range stories {
		for name, opts := range toyOptions {
			t.Run(story+"/"+name, func(t *testing.T) {
				r := play(t, story, bugs{}, opts)
				if r.failure != "" {
					t.Error(r.failure)
				}
				t.Logf("%+v", r.stats)
			})
		}
	}
}

func TestToy_EverySeededBugIsFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		story string
		opts  string
		bugs  bugs
	}{
		{"NoSyncBeforePublish", "Appends", "Strict", bugs{noSyncBeforePublish: true}},
		{"NoDirSync", "Appends", "Strict", bugs{noDirSync: true}},
		{"NoSync", "Appends", "Strict", bugs{noSync: true}},
		{"NoSync", "Appends", "Journal", bugs{noSync: true}},
		{"RetriesSync", "SyncFails", "Strict", bugs{retriesSync: true}},
		{"AdoptsUnsynced", "SyncFails", "Strict", bugs{adoptsUnsynced: true}},
		{"AcksDuringSync", "WriteDuringSync", "Strict", bugs{acksDuringSync: true}},
		{"NoSum", "Appends", "Strict", bugs{noSum: true}},
		{"NoSum", "Appends", "StrictGarbage", bugs{noSum: true}},
		{"TrustsSize", "Appends", "Strict", bugs{trustsSize: true}},
		{"TrustsSize", "Appends", "JournalGarbage", bugs{trustsSize: true}},
		{"NoTruncate", "TornEnd", "Strict", bugs{noTruncate: true}},
		{"ReadErrorIsTorn", "ReadFails", "Strict", bugs{readErrorIsTorn: true}},
	} {
		t.Run(c.name+"/"+c.opts, func(t *testing.T) {
			r := play(t, c.story, c.bugs, toyOptions[c.opts])
			if r.failure == "" {
				t.Fatalf("not found in %+v", r.stats)
			}
			t.Logf("%+v: %s", r.stats, r.failure)
		})
	}
}

// A journal hides a missing directory sync, because the sync of the file
// commits the name along with its size. That is why Strict exists.
func TestToy_JournalHidesMissingDirSync(t *testing.T) {
	if r := play(t, "Appends", bugs{noDirSync: true}, toyOptions["Journal"]); r.failure != "" {
		t.Error(r.failure)
	}
}

func BenchmarkToyRecovery(b *testing.B) {
	s := New()
	l, err := openToy(s, bugs{})
	if err != nil {
		b.Fatal(err)
	}
	for range 10 {
		if err := l.append(); err != nil {
			b.Fatal(err)
		}
	}
	for n := range 3 {
		if _, err := l.file.WriteAt(toyBytes(l.n+n), toyAt(l.n+n)); err != nil {
			b.Fatal(err)
		}
	}
	images := 0
	for b.Loop() {
		images += s.EachImage(ImageOptions{Garbage: true}, func(img *FS) bool {
			if _, err := openToy(img, bugs{}); err != nil {
				b.Fatal(err)
			}
			return true
		}).Distinct
	}
	b.ReportMetric(float64(images)/b.Elapsed().Seconds(), "images/s")
}
