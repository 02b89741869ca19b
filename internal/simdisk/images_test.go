package simdisk

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// create makes a file whose name and content are durable.
func create(t testing.TB, s *FS, name string, data []byte) disk.File {
	t.Helper()
	s.WriteFile(name, data)
	f, err := s.Dir().Open(name, disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t testing.TB, f disk.File, b byte, off, n int64) {
	t.Helper()
	if _, err := f.WriteAt(slices.Repeat([]byte{b}, int(n)), off); err != nil {
		t.Fatal(err)
	}
}

// outcomes lists what the images hold of a file: its sectors by their first
// byte, sorted, "-" for no file.
func outcomes(t testing.TB, s *FS, opts ImageOptions, name string) []string {
	t.Helper()
	set := map[string]bool{}
	stats := s.EachImage(opts, func(img *FS) bool {
		b, err := img.ReadFile(name)
		text := "-"
		if err == nil {
			text = ""
			for i := 0; i < len(b); i += SectorSize {
				c := b[i]
				if c == 0 {
					c = '.'
				}
				text += string(c)
			}
		}
		set[text] = true
		return true
	})
	if !stats.Exhaustive {
		t.Fatalf("not exhaustive: %+v", stats)
	}
	var list []string
	for text := range set {
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

func check(t testing.TB, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("outcomes = %q, want %q", got, want)
	}
}

func TestImages_EverySectorEveryVersion(t *testing.T) {
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

func TestImages_SizeAndNameAreAtoms(t *testing.T) {
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

func TestImages_FailedSyncStaysUncertain(t *testing.T) {
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

func TestImages_HashAgreesWithContent(t *testing.T) {
	s := New()
	f := create(t, s, "f", make([]byte, 700))
	write(t, f, 'a', 100, 1000)
	write(t, f, 'b', 600, 300)
	if err := f.Truncate(900); err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]string{}
	s.EachImage(ImageOptions{Mode: Both, Garbage: true}, func(img *FS) bool {
		b, _ := img.ReadFile("f")
		h := img.Hash()
		if _, ok := seen[h]; ok {
			t.Fatalf("image visited twice:\n%s", img.Log())
		}
		seen[h] = string(b)
		if img.Clone().Hash() != h {
			t.Fatal("clone differs")
		}
		return true
	})
	contents := map[string]bool{}
	for _, b := range seen {
		contents[b] = true
	}
	if len(contents) != len(seen) {
		t.Errorf("%d hashes for %d contents", len(seen), len(contents))
	}
}

func BenchmarkEachImage(b *testing.B) {
	for _, sectors := range []int{4, 8, 12, 64} {
		b.Run(fmt.Sprintf("sectors=%d", sectors), func(b *testing.B) {
			s := New()
			f := create(b, s, "f", make([]byte, 64<<10))
			write(b, f, 'a', 4096, int64(sectors)*SectorSize)
			images := 0
			buf := make([]byte, 4096)
			for b.Loop() {
				images += s.EachImage(ImageOptions{}, func(img *FS) bool {
					g, err := img.Dir().Open("f", disk.ReadWrite)
					if err != nil {
						b.Fatal(err)
					}
					_, _ = g.ReadAt(buf, 4096)
					return true
				}).Distinct
			}
			b.ReportMetric(float64(images)/b.Elapsed().Seconds(), "images/s")
		})
	}
}
