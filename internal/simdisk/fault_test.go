package simdisk

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

func TestInject_EachKindFailsAndChangesNothing(t *testing.T) {
	mine := errors.New("mine")
	for _, kind := range []Kind{
		OpCreate, OpWrite, OpAllocate, OpPunch, OpTruncate, OpSync, OpPublish, OpReplace, OpRemove, OpSyncDir, OpRead,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			s := New()
			d := s.Dir()
			f := create(t, s, "f", []byte("tide"))
			before := s.Hash()
			s.Inject(Fault{Kind: kind, Err: mine})
			act := map[Kind]func() error{
				OpCreate:   func() error { _, err := d.Create("g"); return err },
				OpWrite:    func() error { _, err := f.WriteAt([]byte("x"), 0); return err },
				OpAllocate: func() error { return f.Allocate(0, 100) },
				OpPunch:    func() error { return f.Punch(0, 2) },
				OpTruncate: func() error { return f.Truncate(1) },
				OpSync:     f.Sync,
				OpPublish:  func() error { return d.Publish(f, "g") },
				OpReplace:  func() error { return d.Replace(f, "g") },
				OpRemove:   func() error { return d.Remove("f") },
				OpSyncDir:  d.Sync,
				OpRead:     func() error { _, err := f.ReadAt(make([]byte, 1), 0); return err },
			}[kind]
			err := act()
			var shape *fs.PathError
			if !errors.Is(err, mine) || !errors.As(err, &shape) {
				t.Errorf("first = %v", err)
			}
			if s.Hash() != before {
				t.Error("the failure changed something")
			}
			if kind != OpRead && !strings.Contains(s.Log(), "mine") {
				t.Errorf("the log does not show it:\n%s", s.Log())
			}
			if err := act(); err != nil {
				t.Errorf("second = %v", err)
			}
		})
	}
}

func TestInject_Counts(t *testing.T) {
	s := New()
	f, g := create(t, s, "f", nil), create(t, s, "g", nil)
	s.Inject(Fault{Kind: OpSync, Name: "f", Nth: 2})
	s.Inject(Fault{Kind: OpSync, Name: "g", Nth: 2, Forever: true})
	var got []bool
	for range 4 {
		got = append(got, f.Sync() == nil, g.Sync() == nil)
	}
	want := []bool{true, true, false, false, true, false, true, false}
	if !slices.Equal(got, want) {
		t.Errorf("syncs succeed: %v, want %v", got, want)
	}
}

func TestInject_WriteInPart(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 1024))
	s.Inject(Fault{Kind: OpWrite, Part: 600})
	n, err := f.WriteAt(slices.Repeat([]byte{'b'}, 1024), 0)
	if n != 600 || !errors.Is(err, ErrIO) {
		t.Fatalf("WriteAt = %d, %v", n, err)
	}
	got, _ := s.ReadFile("f")
	if want := strings.Repeat("b", 600) + strings.Repeat("a", 424); string(got) != want {
		t.Error("the part is not what was written")
	}
}

func TestCapacity(t *testing.T) {
	s := New()
	s.Capacity = 4 * SectorSize
	d := s.Dir()
	f, err := d.Create("f")
	need(t, err)
	need(t, f.Allocate(0, 3*SectorSize))
	if err := f.Allocate(3*SectorSize, 2*SectorSize); !errors.Is(err, disk.ErrNoSpace) {
		t.Errorf("Allocate = %v", err)
	}
	n, err := f.WriteAt(make([]byte, 1000), 3*SectorSize+100)
	if n != SectorSize-100 || !errors.Is(err, disk.ErrNoSpace) {
		t.Errorf("WriteAt = %d, %v, want a short write", n, err)
	}
	write(t, f, 'x', 0, 4*SectorSize) // what is reserved is there
	need(t, f.Sync(), d.Sync())
	s.EachImage(ImageOptions{}, func(img *FS) bool {
		g, err := img.Dir().Create("g")
		need(t, err)
		if n, err := g.WriteAt([]byte("x"), 0); n != 0 || !errors.Is(err, disk.ErrNoSpace) {
			t.Errorf("WriteAt in a full image = %d, %v", n, err)
		}
		return true
	})
	need(t, f.Punch(0, 2*SectorSize))
	need(t, f.Allocate(4*SectorSize, 2*SectorSize))
	need(t, f.Truncate(0))
	write(t, f, 'x', 0, 4*SectorSize)
}

func TestCapacity_WritesAlone(t *testing.T) {
	s := New()
	s.Capacity = 4 * SectorSize
	for _, name := range []string{"f", "g", "h"} { // each finds all the room there is
		f := create(t, s, name, nil)
		n, err := f.WriteAt(make([]byte, 5*SectorSize-100), 0)
		if n != 4*SectorSize || !errors.Is(err, disk.ErrNoSpace) {
			t.Errorf("WriteAt = %d, %v", n, err)
		}
		need(t, f.Truncate(4*SectorSize-100), f.Truncate(0))
	}
}

func TestNoPunch(t *testing.T) {
	s := New()
	s.NoPunch = true
	f := create(t, s, "f", []byte("tide"))
	if err := f.Punch(0, 4); !errors.Is(err, disk.ErrNoPunch) {
		t.Errorf("Punch = %v", err)
	}
}

func TestKill(t *testing.T) {
	s := New()
	f := create(t, s, "f", []byte("tide"))
	old := s.Dir()
	need(t, f.Lock())
	write(t, f, 'x', 0, 4)
	s.Kill()
	_, err := old.Open("f", disk.ReadOnly)
	for what, err := range map[string]error{
		"Open": err, "Sync": f.Sync(), "Truncate": f.Truncate(0), "Lock": f.Lock(), "Dir.Sync": old.Sync(), "Close": f.Close(),
	} {
		if !errors.Is(err, ErrKilled) {
			t.Errorf("%s after Kill = %v", what, err)
		}
	}
	g, err := s.Dir().Open("f", disk.ReadWrite)
	need(t, err, g.Lock())
	if got, _ := s.ReadFile("f"); string(got) != "xxxx" {
		t.Errorf("the page cache holds %q", got)
	}
	check(t, outcomes(t, s, ImageOptions{}, "f"), "t", "x")
}

// The power goes while a sync runs: it neither returns nil nor persists more.
func TestKill_InsideSync(t *testing.T) {
	s := New()
	f := create(t, s, "f", []byte("a"))
	write(t, f, 'b', 0, 1)
	s.Before(func(op Op) {
		if op.Inside {
			s.Kill()
		}
	})
	if err := f.Sync(); !errors.Is(err, ErrKilled) {
		t.Errorf("Sync = %v", err)
	}
	check(t, outcomes(t, s, ImageOptions{}, "f"), "a", "b")
}

func TestCorrupt(t *testing.T) {
	content := func() []byte {
		b := make([]byte, 4*SectorSize)
		for i := range b {
			b[i] = byte('a' + i/SectorSize)
		}
		return b
	}
	for name, c := range map[string]struct {
		damage func(s *FS) error
		want   func(b []byte)
	}{
		"Corrupt":    {func(s *FS) error { return s.Corrupt("f", 510, []byte("1234")) }, func(b []byte) { copy(b[510:], "1234") }},
		"FlipBit":    {func(s *FS) error { return s.FlipBit("f", 513*8+2) }, func(b []byte) { b[513] ^= 4 }},
		"ZeroSector": {func(s *FS) error { return s.ZeroSector("f", 700) }, func(b []byte) { clear(b[512:1024]) }},
		"Swap": {func(s *FS) error { return s.Swap("f", 0, 1024, 600) }, func(b []byte) {
			one := slices.Clone(b[:600])
			copy(b, b[1024:1624])
			copy(b[1024:], one)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			create(t, s, "f", content())
			need(t, c.damage(s))
			want := content()
			c.want(want)
			if got, _ := s.ReadFile("f"); !slices.Equal(got, want) {
				t.Error("the running system sees something else")
			}
			s.EachImage(ImageOptions{}, func(img *FS) bool {
				if got, _ := img.ReadFile("f"); !slices.Equal(got, want) {
					t.Error("the disk holds something else")
				}
				return true
			})
		})
	}
}

func TestCorrupt_Nonsense(t *testing.T) {
	s := New()
	create(t, s, "f", []byte("tide"))
	for _, err := range []error{
		s.Corrupt("f", 2, []byte("xxx")), s.Corrupt("f", -1, []byte("x")), s.FlipBit("f", 32), s.Swap("f", 0, 3, 2),
	} {
		if !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}
	if err := s.ZeroSector("g", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Rot under a page that is dirty in memory does not show, and the next sync
// writes over it.
func TestCorrupt_UnderADirtySector(t *testing.T) {
	s := New()
	f := create(t, s, "f", []byte("a"))
	write(t, f, 'b', 0, 1)
	need(t, s.Corrupt("f", 0, []byte("r")))
	if got, _ := s.ReadFile("f"); string(got) != "b" {
		t.Errorf("the running system sees %q", got)
	}
	check(t, outcomes(t, s, ImageOptions{}, "f"), "r", "b")
	need(t, f.Sync())
	check(t, outcomes(t, s, ImageOptions{}, "f"), "b")
}
