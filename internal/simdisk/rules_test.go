package simdisk

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

func TestRule_EverySectorEveryVersion(t *testing.T) {
	s := New()
	f := create(t, s, "f", []byte{})
	write(t, f, 'a', 0, 1024)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	check(t, outcomes(t, s, ImageOptions{}, "f"), "aa")
	write(t, f, 'b', 0, 512)
	write(t, f, 'c', 0, 1024)
	check(t, outcomes(t, s, ImageOptions{}, "f"), "aa", "ba", "ca", "ac", "bc", "cc")
}

func TestRule_SizeAndNameAreAtoms(t *testing.T) {
	s := New()
	f, err := s.Dir().Create("f")
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, 'a', 0, 512)
	check(t, outcomes(t, s, ImageOptions{}, "f"), "-", "", ".", "a")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	check(t, outcomes(t, s, ImageOptions{}, "f"), "-", "a")
	if err := s.Dir().Sync(); err != nil {
		t.Fatal(err)
	}
	check(t, outcomes(t, s, ImageOptions{}, "f"), "a")
}

func TestRule_FailedSyncStaysUncertain(t *testing.T) {
	s := New()
	f := create(t, s, "f", []byte("x"))
	write(t, f, 'a', 0, 1024)
	s.Inject(Fault{Kind: OpSync})
	if err := f.Sync(); !errors.Is(err, ErrIO) {
		t.Fatalf("Sync = %v", err)
	}
	for range 2 {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		check(t, outcomes(t, s, ImageOptions{}, "f"), "x", "a", "xa", "aa", "x.", "a.")
	}
	write(t, f, 'a', 0, 1024)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	check(t, outcomes(t, s, ImageOptions{}, "f"), "aa")
}

func need(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// listings is outcomes for the names of the directory.
func listings(t testing.TB, s *FS, opts ImageOptions) []string {
	t.Helper()
	var list []string
	s.EachImage(opts, func(img *FS) bool {
		names, err := img.Dir().Names()
		need(t, err)
		var text strings.Builder
		for _, name := range names {
			b, err := img.ReadFile(name)
			need(t, err)
			text.WriteString(name + "=" + string(b) + " ")
		}
		list = append(list, text.String())
		return true
	})
	slices.Sort(list)
	return slices.Compact(list)
}

func TestRule_NamesStrictAndJournal(t *testing.T) {
	s := New()
	d := s.Dir()
	_, err := d.Create("a")
	need(t, err)
	_, err = d.Create("b")
	need(t, err)
	check(t, listings(t, s, ImageOptions{}), "", "a= ", "b= ", "a= b= ")
	check(t, listings(t, s, ImageOptions{Mode: Journal}), "", "a= ", "a= b= ")
	need(t, d.Sync(), d.Remove("a"), d.Remove("b"))
	check(t, listings(t, s, ImageOptions{}), "", "a= ", "b= ", "a= b= ")
	check(t, listings(t, s, ImageOptions{Mode: Journal}), "a= b= ", "b= ", "")
}

func TestRule_PublishIsTwoNames(t *testing.T) {
	s := New()
	need(t, s.Dir().Publish(create(t, s, "tmp", []byte("x")), "log"))
	check(t, listings(t, s, ImageOptions{}), "", "log=x ", "log=x tmp=x ", "tmp=x ")
	check(t, listings(t, s, ImageOptions{Mode: Journal}), "log=x ", "tmp=x ")
}

func TestRule_ReplaceNeverLosesTheName(t *testing.T) {
	s := New()
	s.WriteFile("log", []byte("old"))
	need(t, s.Dir().Replace(create(t, s, "tmp", []byte("new")), "log"))
	check(t, listings(t, s, ImageOptions{}), "log=new ", "log=new tmp=new ", "log=old ", "log=old tmp=new ")
	check(t, listings(t, s, ImageOptions{Mode: Journal}), "log=new ", "log=old tmp=new ")
	need(t, s.Dir().Sync())
	check(t, listings(t, s, ImageOptions{}), "log=new ")
}

// A sync of a file commits the journal, and with it every earlier name.
func TestRule_JournalCommitsInOrder(t *testing.T) {
	s := New()
	d := s.Dir()
	_, err := d.Create("a")
	need(t, err)
	f, err := d.Create("b")
	need(t, err)
	write(t, f, 'x', 0, 1)
	_, err = d.Create("c")
	need(t, err, f.Sync())
	check(t, listings(t, s, ImageOptions{Mode: Journal}), "a= b=x ", "a= b=x c= ")
	if got := listings(t, s, ImageOptions{}); len(got) != 8 {
		t.Errorf("strict: %q", got)
	}
}

func TestRule_TruncateAndExtend(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 3*SectorSize))
	need(t, f.Truncate(SectorSize), f.Truncate(3*SectorSize))
	check(t, outcomes(t, s, ImageOptions{Mode: Journal}, "f"), "aaa", "a", "a..")
	check(t, outcomes(t, s, ImageOptions{}, "f"), "aaa", "a", "a..", "aa.", "a.a")
	write(t, f, 'b', SectorSize, SectorSize)
	check(t, outcomes(t, s, ImageOptions{Mode: Journal}, "f"), "aaa", "a", "a..", "ab.")
	need(t, f.Sync())
	check(t, outcomes(t, s, ImageOptions{Mode: Both}, "f"), "ab.")
}

func TestRule_FailedSyncHealsSectorBySector(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 2*SectorSize))
	write(t, f, 'b', 0, 2*SectorSize)
	s.Inject(Fault{Kind: OpSync})
	if err := f.Sync(); !errors.Is(err, ErrIO) {
		t.Fatalf("Sync = %v", err)
	}
	write(t, f, 'b', 0, SectorSize)
	check(t, outcomes(t, s, ImageOptions{}, "f"), "aa", "ab", "ba", "bb")
	need(t, f.Sync())
	check(t, outcomes(t, s, ImageOptions{}, "f"), "ba", "bb")
	got := make([]byte, 2*SectorSize)
	_, err := f.ReadAt(got, 0)
	need(t, err)
	if got[SectorSize] != 'b' {
		t.Error("the running system lost sight of the unsynced sector")
	}
}

// A truncation that lasts makes zeros of what a failed sync left uncertain, even
// where the running system sees zeros already.
func TestRule_TruncationSettlesWhatAFailedSyncLeft(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 3*SectorSize))
	need(t, f.Truncate(0))
	s.Inject(Fault{Kind: OpSync})
	_ = f.Sync()
	need(t, f.Truncate(3*SectorSize), f.Sync())
	check(t, outcomes(t, s, ImageOptions{}, "f"), "...", "a..", ".a.", "..a", "aa.", "a.a", ".aa", "aaa")
	need(t, f.Truncate(SectorSize), f.Truncate(3*SectorSize), f.Sync())
	check(t, outcomes(t, s, ImageOptions{}, "f"), "...", "a..")
	need(t, f.Punch(0, SectorSize), f.Sync())
	check(t, outcomes(t, s, ImageOptions{}, "f"), "...")
}

// The size that a failed sync left open is settled by setting it again, by a
// truncation or by a write up to the end.
func TestRule_FailedSyncLeavesTheSizeOpen(t *testing.T) {
	for name, again := range map[string]func(disk.File) error{
		"Truncate": func(f disk.File) error { return f.Truncate(2 * SectorSize) },
		"WriteAt": func(f disk.File) error {
			_, err := f.WriteAt([]byte{0}, 2*SectorSize-1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			f := create(t, s, "f", slices.Repeat([]byte{'a'}, SectorSize))
			need(t, f.Truncate(2*SectorSize))
			s.Inject(Fault{Kind: OpSync})
			_ = f.Sync()
			write(t, f, 'a', 0, 1)
			need(t, f.Sync())
			check(t, outcomes(t, s, ImageOptions{}, "f"), "a", "a.")
			need(t, again(f))
			check(t, outcomes(t, s, ImageOptions{Mode: Both}, "f"), "a", "a.")
			need(t, f.Sync())
			check(t, outcomes(t, s, ImageOptions{Mode: Both}, "f"), "a.")
		})
	}
}

func TestRule_GarbageSparesProtectedSectors(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 3*SectorSize))
	write(t, f, 'b', 0, 2*SectorSize)
	opts := ImageOptions{Garbage: true, Protected: func(name string, off int64) bool {
		return name == "f" && off == 0
	}}
	seen := [3]map[string]bool{{}, {}, {}}
	s.EachImage(opts, func(img *FS) bool {
		b, err := img.ReadFile("f")
		need(t, err)
		for i := range seen {
			seen[i][string(b[i*SectorSize:(i+1)*SectorSize])] = true
		}
		return true
	})
	if len(seen[0]) != 2 || len(seen[1]) != 4 || len(seen[2]) != 1 {
		t.Errorf("%d outcomes of the protected sector, %d of the other in flight, %d of the one at rest",
			len(seen[0]), len(seen[1]), len(seen[2]))
	}
	if !seen[1][string(make([]byte, SectorSize))] {
		t.Error("the unprotected sector never ends as zeros")
	}
}

func TestRule_SyncCoversWhatReturnedBefore(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 2*SectorSize))
	write(t, f, 'b', 0, SectorSize)
	s.Before(func(op Op) {
		if op.Inside {
			check(t, outcomes(t, s, ImageOptions{}, "f"), "aa", "ba")
			s.Before(nil)
			write(t, f, 'c', SectorSize, SectorSize)
		}
	})
	need(t, f.Sync())
	check(t, outcomes(t, s, ImageOptions{}, "f"), "ba", "bc")
	s.Before(func(op Op) {
		if op.Inside {
			s.Before(nil)
			need(t, s.Dir().Remove("f"))
		}
	})
	need(t, s.Dir().Sync())
	if got := listings(t, s, ImageOptions{}); len(got) != 3 {
		t.Errorf("%d listings, want the removal and the sector open", len(got))
	}
}

func TestRule_CrashPointBeforeEveryChange(t *testing.T) {
	s := New()
	var points []string
	s.Before(func(op Op) { points = append(points, op.String()) })
	d := s.Dir()
	f, err := d.Create("tmp")
	need(t, err)
	write(t, f, 'a', 0, 10)
	need(t, f.Allocate(0, 100), f.Punch(2, 3), f.Truncate(50), f.Sync(), d.Publish(f, "log"))
	g, err := d.Create("tmp")
	need(t, err, d.Replace(g, "log"), d.Sync(), d.Remove("log"))
	want := []string{
		"#1 create tmp", "#2 write tmp [0, 10)", "#3 allocate tmp [0, 100)", "#4 punch tmp [2, 5)",
		"#5 truncate tmp to 50", "#6 sync tmp", "#6 sync (inside) tmp", "#7 publish tmp -> log",
		"#8 create tmp", "#9 replace tmp -> log", "#10 syncdir", "#10 syncdir (inside)", "#11 remove log",
	}
	if !slices.Equal(points, want) {
		t.Errorf("crash points:\n%q\nwant\n%q", points, want)
	}
	if s.Ops() != 11 {
		t.Errorf("Ops = %d", s.Ops())
	}
}

func TestRule_SizeWithoutDataReadsZeros(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, SectorSize))
	write(t, f, 'b', SectorSize, SectorSize)
	check(t, outcomes(t, s, ImageOptions{}, "f"), "a", "a.", "ab")
	var seen []string
	s.EachImage(ImageOptions{Garbage: true}, func(img *FS) bool {
		b, err := img.ReadFile("f")
		need(t, err)
		seen = append(seen, string(b))
		return true
	})
	if len(seen) != 4 { // and stale noise
		t.Errorf("%d outcomes with garbage, want 4", len(seen))
	}
}
