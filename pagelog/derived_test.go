package pagelog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// checkpointed makes a closed log with a checkpoint behind nearly every commit,
// and returns what its commits hold.
func checkpointed(t testing.TB) (*sim, []string) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: 1})
	var want []string
	for i, n := range []int{20, 376, 300, 1500, 10, 1000, 3000, 60, 5000, 7} {
		p := payload(i, n)
		commit(t, l, p)
		want = append(want, string(p)+"|")
		if i == 4 {
			if err := l.Checkpoint(ctx0, 3, []byte("state of the host")); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeLog(t, l)
	return s, want
}

// L35, C44, L26: damage to a derived group, at any byte, changes no content, for
// the writer, for readers, forward, backward and by revision; and the log goes
// on, for good: that no commit was there is said by the next group, which
// carries on revision and chain.
func TestL35_DamagedCheckpointsChangeNoContent(t *testing.T) {
	s, want := checkpointed(t)
	list := s.groups()
	s.put(s.bytes()[:list[len(list)-1].end])
	whole := s.bytes()
	step := int64(13)
	if testing.Short() || raceEnabled {
		step = 101
	}
	derived := 0
	for _, g := range list {
		if !g.Derived() {
			continue
		}
		derived++
		for off := g.start; off < g.end; off += step {
			b := bytes.Clone(whole)
			b[off] ^= 1 << (off % 8)
			s.put(b)
			where := fmt.Sprintf("derived group [%d, %d) behind revision %d, byte %d", g.start, g.end, g.Revision, off)
			r := s.reader(ReaderOptions{})
			got, err := contents(r, 0)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: a reader got %d commits, %v", where, len(got), err)
			}
			readEveryWay(t, r, want)
			l := s.open(Options{CheckpointEvery: 1})
			if r := l.Report(); r.Head != uint64(len(want)) || r.FromOffset <= g.start && len(r.Bridged) != 1 && off%4096 >= 32 {
				t.Fatalf("%s: %+v", where, r)
			}
			readEveryWay(t, l.Reader, want)
			commit(t, l, payload(99, 700))
			commit(t, l, payload(98, 20))
			if off%2 == 0 {
				s.fs.Kill() // no slot says what closing would
			} else {
				closeLog(t, l)
			}
			l = s.open(Options{})
			if got, err := contents(l.Reader, 0); err != nil || len(got) != len(want)+2 {
				t.Fatalf("%s, later: %d commits, %v", where, len(got), err)
			}
			closeLog(t, l)
		}
	}
	if derived < 5 {
		t.Fatalf("%d derived groups", derived)
	}
}

// L36: how often checkpoints are written changes no commit and no digest.
func TestL36_CheckpointsAreNoPartOfHistory(t *testing.T) {
	var digests []string
	for _, every := range []int64{-1, 0, 1, 500, 5000} {
		s := newSim(t)
		l := s.create(small, Options{CheckpointEvery: every})
		var text strings.Builder
		for i := range 30 {
			text.WriteString(fmt.Sprint(commit(t, l, payload(i, i*53)).Digest))
		}
		digests = append(digests, text.String())
		if digests[0] != text.String() {
			t.Fatalf("a checkpoint every %d bytes gives other digests", every)
		}
	}
}

// L9: every limit that the log records, at its edge and beyond; excess changes
// nothing.
func TestL9_Limits(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{PageSize: 4096, MaxRecord: 100, MaxGroup: 500, MaxRecords: 3}, Options{})
	rec := func(n int) []byte { return payload(n, n) }
	var reserved, codec Batch
	reserved.Add(Record{Kind: frame.FirstReservedKind})
	reserved.Append(rec(1)) // the first error stays
	codec.Add(Record{Codec: 200})
	for _, c := range []struct {
		name string
		b    *Batch
		want error
	}{
		{"a record of the limit", batchOf(rec(100)), nil},
		{"a record over it", batchOf(rec(101)), ErrTooLarge},
		{"a group of the limit", batchOf(rec(100), rec(100), rec(100)), nil}, // 3 * (24 + 104)
		{"records of the limit", batchOf(nil, nil, nil), nil},
		{"a record too many", batchOf(nil, nil, nil, nil), ErrTooLarge},
		{"no record", batchOf(), ErrEmpty},
		{"a record of nothing", batchOf(nil), nil},
		{"a reserved kind", &reserved, errors.ErrUnsupported},
		{"no such codec", &codec, errors.ErrUnsupported},
	} {
		before, ops := s.fs.Hash(), s.fs.Ops()
		head := l.Head()
		_, err := l.Commit(ctx0, c.b)
		switch {
		case c.want == errors.ErrUnsupported: // any rejection will do
			if err == nil {
				t.Errorf("%s: no error", c.name)
			}
		case !errors.Is(err, c.want) || c.want == nil && err != nil:
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != nil && (s.fs.Hash() != before || s.fs.Ops() != ops || l.Head() != head || errors.Is(err, ErrUncertain)) {
			t.Errorf("%s: a rejection changed something", c.name)
		}
	}
	big := newSim(t)
	bl := big.create(CreateOptions{PageSize: 4096, MaxGroup: 300}, Options{})
	if _, err := bl.Commit(ctx0, batchOf(rec(100), rec(100), rec(100))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a group over the limit: %v", err)
	}
	if n := batchOf(rec(8), rec(9)).Size(); n != 80+24+8+24+16 {
		t.Errorf("size %d", n)
	}
	for _, c := range []CreateOptions{
		{PageSize: 1},
		{PageSize: 5000},
		{PageSize: 2 << 20},
		{Align: 7},
		{Align: 16},
		{MaxRecord: -1},
		{MaxRecord: 2 << 30},
		{MaxGroup: 8},
		{MaxRecords: 1 << 21},
		{MaxSize: -1},
		{MaxSize: 1000},
		{PageSize: 64 << 10, MaxSize: 64 << 10},
	} {
		if _, err := CreateIn(newSim(t).env(), logName, c, Options{}); err == nil || !strings.Contains(err.Error(), "option") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, o := range []Options{{MaxUnsynced: -1}, {ZeroAhead: 3}, {ZeroAhead: -1}} {
		s := newSim(t)
		closeLog(t, s.create(small, Options{}))
		if _, err := OpenIn(s.env(), logName, o); err == nil || !strings.Contains(err.Error(), "option") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

var errInjected = errors.New("injected")

// brittleDir fails the nth call that does not change anything.
type brittleDir struct {
	disk.Dir
	left *int
}

type brittleFile struct {
	disk.File
	left *int
}

func strike(left *int) error {
	if *left--; *left == 0 {
		return errInjected
	}
	return nil
}

func (d *brittleDir) Open(name string, a disk.Access) (disk.File, error) {
	if err := strike(d.left); err != nil {
		return nil, err
	}
	f, err := d.Dir.Open(name, a)
	if err != nil {
		return nil, err
	}
	return &brittleFile{f, d.left}, nil
}

func (d *brittleDir) FileSystem() (disk.FileSystem, error) {
	if err := strike(d.left); err != nil {
		return disk.FileSystem{}, err
	}
	return d.Dir.FileSystem()
}

func (d *brittleDir) Sync() error { return errors.Join(strike(d.left), d.Dir.Sync()) }

func (f *brittleFile) ReadAt(p []byte, off int64) (int, error) {
	if err := strike(f.left); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *brittleFile) Stat() (disk.Info, error) {
	if err := strike(f.left); err != nil {
		return disk.Info{}, err
	}
	return f.File.Stat()
}

func (f *brittleFile) Named() (int64, bool, error) {
	if err := strike(f.left); err != nil {
		return 0, false, err
	}
	return f.File.Named()
}

func (f *brittleFile) Lock() error { return errors.Join(strike(f.left), f.File.Lock()) }

// Every call that reads fails once, in every operation: the operation says so,
// or tries again and has it; it never takes what it could not read for the end
// of the log or for damage.
func TestL26_ReadErrorsAreNeverTakenForDamage(t *testing.T) {
	s, want := checkpointed(t)
	whole := s.bytes()
	torn := bytes.Clone(whole)
	list := s.groups()
	torn = append(torn[:list[len(list)-1].end], payload(1, 3000)...)
	bad := bytes.Clone(whole)
	bad[list[slices.IndexFunc(list, func(p passed) bool { return p.Derived() })].end-40] ^= 1
	all := func(r *Reader) error {
		got, err := contents(r, 0)
		if err == nil && len(got) != len(want) {
			return fmt.Errorf("%d commits", len(got))
		}
		return err
	}
	reader := func(do func(r *Reader) error) func(env Env) error {
		return func(env Env) error {
			r, err := OpenReaderIn(env, logName, ReaderOptions{})
			if err != nil {
				return err
			}
			return do(r)
		}
	}
	ops := map[string]func(env Env) error{
		"open": func(env Env) error {
			l, err := OpenIn(env, logName, Options{Expect: &Expect{}})
			if err != nil {
				return err
			}
			if l.Head().Revision != uint64(len(want)) {
				return fmt.Errorf("head %+v", l.Head())
			}
			return nil
		},
		"read": reader(all),
		"durable": func(env Env) error {
			r, err := OpenReaderIn(env, logName, ReaderOptions{Durable: true})
			if err != nil {
				return err
			}
			return all(r)
		},
		"by revision": reader(func(r *Reader) error {
			var g Group
			for rev := range uint64(len(want)) {
				if err := r.At(rev+1, &g); err != nil {
					return err
				}
				if g.Revision != rev+1 || string(g.body[24:24+len(want[rev])-1])+"|" != want[rev] {
					return fmt.Errorf("revision %d", g.Revision)
				}
			}
			return nil
		}),
		"backward": reader(func(r *Reader) error {
			for _, err := range r.Backward(0) {
				if err != nil {
					return err
				}
			}
			return nil
		}),
		"cursor": reader(func(r *Reader) error {
			d, err := r.DigestAt(4)
			if err != nil {
				return err
			}
			for _, err := range r.From(r.Cursor(Commit{Revision: 4, Digest: d})) {
				if err != nil {
					return err
				}
			}
			return nil
		}),
		"last checkpoint": reader(func(r *Reader) error {
			_, data, err := r.LastCheckpoint()
			if err == nil && string(data) != "state of the host" {
				return fmt.Errorf("%q", data)
			}
			return err
		}),
		"info":   reader(func(r *Reader) error { _, err := r.Info(); return err }),
		"verify": func(env Env) error { _, err := VerifyIn(ctx0, env, logName, VerifyOptions{Workers: 1}); return err },
	}
	for shape, file := range map[string][]byte{"closed": whole, "torn": torn, "derived damage": bad} {
		for name, op := range ops {
			if shape == "derived damage" && name == "verify" {
				continue
			}
			failed := 0
			for nth := 1; ; nth++ {
				s.put(file)
				left := nth
				env := s.env()
				env.Dir = &brittleDir{env.Dir, &left}
				err := op(env)
				if left > 0 {
					if err != nil {
						t.Fatalf("%s, %s, nothing failed: %v", shape, name, err)
					}
					break
				}
				if err != nil && !errors.Is(err, errInjected) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotALog) {
					t.Fatalf("%s, %s, call %d failed: %v", shape, name, nth, err)
				}
				failed++
			}
			if failed < 4 {
				t.Errorf("%s, %s: only %d calls", shape, name, failed)
			}
		}
	}
}

// A source of randomness that fails makes no log.
func TestCreate_NoRandomness(t *testing.T) {
	for n := range 4 {
		s := newSim(t)
		env := s.env()
		env.Random = io.LimitReader(&s.dice, int64([]int{0, 20, 44, 50}[n]))
		if l, err := CreateIn(env, logName, small, Options{}); err == nil {
			t.Fatalf("made %v of %d bytes", l.LogID(), n)
		}
	}
}

// fickleFile reads well once: the second time, other bytes come back.
type fickleDir struct{ disk.Dir }

type fickleFile struct {
	disk.File
	read map[int64]bool
}

func (d fickleDir) Open(name string, a disk.Access) (disk.File, error) {
	f, err := d.Dir.Open(name, a)
	return &fickleFile{f, map[int64]bool{}}, err
}

func (f *fickleFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	for i := range p[:n] {
		if at := off + int64(i); f.read[at] && at >= 16384 {
			p[i] ^= 0x55
		} else {
			f.read[at] = true
		}
	}
	return n, err
}

// L25: what recovery writes again is what it verified, not what a second read
// gives: between the two a page may be read anew from a disk that lost it.
func TestL25_RewritesWhatWasVerified(t *testing.T) {
	s := unacknowledged(t, 300, 5000, 20)
	whole := s.bytes()
	end := s.groups()[len(sizes)+3].end
	env := s.env()
	env.Dir = fickleDir{env.Dir}
	l, err := OpenIn(env, logName, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := l.Report(); r.Rewritten < 5000 || !bytes.Equal(s.bytes()[16384:], whole[16384:end]) {
		t.Fatalf("the file holds other bytes now; %+v", r)
	}
}

// TestBridge_L26_IterationThatIsOvertaken: an iteration comes to derived damage
// at its end when the slots name later places already: what follows by now says
// that no commit was lost there.
func TestBridge_L26_IterationThatIsOvertaken(t *testing.T) {
	for _, durable := range []bool{false, true} {
		s := newSim(t)
		l := s.create(small, Options{CheckpointEvery: -1})
		commit(t, l, []byte("one"))
		commit(t, l, payload(2, 300<<10)) // more than a reader reads ahead
		if err := l.Checkpoint(ctx0, 2, []byte("state")); err != nil {
			t.Fatal(err)
		}
		to := l.head.end
		closeLog(t, l)
		s.flip(to-4, 1) // the checkpoint's body
		l = s.open(Options{CheckpointEvery: -1})
		r := s.reader(ReaderOptions{Durable: durable})
		n := uint64(0)
		for g, err := range r.Commits(0) {
			if err != nil {
				t.Errorf("durable %v, behind revision %d: %v", durable, n, err)
				break
			}
			if n = g.Revision; n == 1 {
				for range 2 { // both slots
					if err := l.Checkpoint(ctx0, commit(t, l, []byte("more")).Revision, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if n != 2 {
			t.Errorf("durable %v: it ended behind revision %d", durable, n)
		}
		closeLog(t, l)
	}
}
