package simdisk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
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

// busy returns a file system with much in flight: contents, sizes, names, and
// what a failed sync left open.
func busy(t testing.TB) *FS {
	s := New()
	d := s.Dir()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 3000))
	write(t, f, 'b', 500, 2000)
	s.Inject(Fault{Kind: OpSync})
	_ = f.Sync()
	write(t, f, 'c', 100, 1000)
	need(t, f.Truncate(2500))
	g, err := d.Create("g")
	need(t, err)
	write(t, g, 'd', 0, 2000)
	need(t, d.Publish(g, "h"))
	write(t, f, 'e', 2000, 3000)
	need(t, f.Punch(100, 1200))
	return s
}

// hashes lists the images in the order in which they are visited.
func hashes(s *FS, opts ImageOptions) (list []uint64, stats ImageStats) {
	stats = s.EachImage(opts, func(img *FS) bool {
		list = append(list, img.Hash())
		return true
	})
	return list, stats
}

var sampled = ImageOptions{Mode: Both, MaxBits: 5, Samples: 300, Garbage: true}

func TestImages_Deterministic(t *testing.T) {
	one, _ := hashes(busy(t), sampled)
	s := busy(t)
	two, _ := hashes(s, sampled)
	again, _ := hashes(s, sampled)
	clone, _ := hashes(s.Clone(), sampled)
	if !slices.Equal(one, two) || !slices.Equal(one, again) || !slices.Equal(one, clone) {
		t.Error("the same history has other images")
	}
	other := sampled
	other.Seed = 1
	if seeded, _ := hashes(s, other); slices.Equal(one, seeded) {
		t.Error("the seed changes nothing")
	}
}

// Where there are too many images for all, those that are built are legal, and
// the extremes are among them.
func TestImages_SampledAreLegal(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 2000))
	write(t, f, 'b', 500, 1000)
	need(t, f.Truncate(1200))
	write(t, f, 'c', 1000, 1000)
	for _, mode := range []Mode{Strict, Journal} {
		all, stats := hashes(s, ImageOptions{Mode: mode, MaxBits: 24, Garbage: true})
		if !stats.Exhaustive || stats.Distinct != len(all) {
			t.Fatalf("%+v", stats)
		}
		legal := map[uint64]bool{}
		for _, h := range all {
			legal[h] = true
		}
		some, stats := hashes(s, ImageOptions{Mode: mode, MaxBits: 4, Garbage: true})
		if stats.Exhaustive || len(some) >= len(all) {
			t.Fatalf("%d of %d, %+v", len(some), len(all), stats)
		}
		for _, h := range some {
			if !legal[h] {
				t.Fatalf("mode %d: a sampled image that is none of all", mode)
			}
		}
		if !slices.Contains(some, s.Hash()) {
			t.Errorf("mode %d: the image in which all landed is missing", mode)
		}
	}
}

func TestRandomImage_IsLegalAndStays(t *testing.T) {
	s := New()
	f := create(t, s, "f", slices.Repeat([]byte{'a'}, 3000))
	write(t, f, 'b', 500, 2000)
	need(t, f.Truncate(1000))
	opts := ImageOptions{Mode: Both, MaxBits: 20}
	all, _ := hashes(s, opts)
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[uint64]bool{}
	var kept []*FS
	for range 200 {
		img := s.RandomImage(opts, rng)
		h := img.Hash()
		if !slices.Contains(all, h) {
			t.Fatalf("not legal:\n%s", img.Log())
		}
		seen[h] = true
		kept = append(kept, img)
	}
	if len(seen) < 30 {
		t.Errorf("%d different ones of %d", len(seen), len(all))
	}
	before := kept[0].Hash()
	write(t, f, 'z', 0, 3000)
	need(t, f.Sync())
	if kept[0].Hash() != before {
		t.Error("the image changed with its origin")
	}
}

func TestEachImage_StopsWhenTold(t *testing.T) {
	visits := 0
	stats := busy(t).EachImage(sampled, func(*FS) bool {
		visits++
		return visits < 3
	})
	if visits != 3 || stats.Distinct != 3 || stats.Exhaustive {
		t.Errorf("%d visits, %+v", visits, stats)
	}
}

// Where the images are sampled, each of these is among them: what a disk does
// to the work of a program that forgot one sync.
func TestEachImage_SampledFindWhatMatters(t *testing.T) {
	s := New()
	f := create(t, s, "f", nil)
	for i := range 12 {
		write(t, f, byte('a'+i), int64(i)*4*SectorSize, 4*SectorSize)
	}
	all, err := s.ReadFile("f")
	need(t, err)
	seen := map[string]bool{}
	s.EachImage(ImageOptions{Samples: -1}, func(img *FS) bool {
		b, err := img.ReadFile("f")
		need(t, err)
		seen[string(b)] = true
		return true
	})
	hole := func(from, to int) string {
		b := slices.Clone(all)
		clear(b[from*SectorSize : to*SectorSize])
		return string(b)
	}
	for what, b := range map[string]string{
		"nothing":                     "",
		"everything":                  string(all),
		"the size alone":              hole(0, 48),
		"the first half":              string(all[:24*SectorSize]),
		"the first half of the data":  hole(24, 48),
		"a torn last write":           hole(46, 48),
		"the second half of the data": hole(0, 24),
		"all but one write":           hole(20, 24),
		"all but one sector":          hole(21, 22),
		"all but a torn write":        hole(20, 22),
	} {
		if !seen[b] {
			t.Errorf("%s: not among %d images", what, len(seen))
		}
	}
}

func TestEachImage_AtOnceAndNested(t *testing.T) {
	s := busy(t)
	want, _ := hashes(s, sampled)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if got, _ := hashes(s, sampled); !slices.Equal(got, want) {
				t.Error("images differ when they are visited at once")
			}
		})
	}
	s.EachImage(sampled, func(*FS) bool {
		if got, _ := hashes(s, sampled); !slices.Equal(got, want) {
			t.Error("images differ within a visit")
		}
		return false
	})
	wg.Wait()
}

func TestEachImage_HandlesEndWithTheImage(t *testing.T) {
	s := busy(t)
	var old disk.File
	s.EachImage(sampled, func(img *FS) bool {
		if old != nil {
			if _, err := old.WriteAt([]byte("x"), 0); !errors.Is(err, ErrKilled) {
				t.Fatalf("WriteAt through an earlier image = %v", err)
			}
		}
		f, err := img.Dir().Open("f", disk.ReadWrite)
		need(t, err, f.Lock())
		old = f
		return true
	})
}

// An image is a file system of its own: what happens in it stays in it, it can
// lose power again, and nothing in it is in flight at first.
func TestEachImage_ImageIsAFileSystem(t *testing.T) {
	s := busy(t)
	live := s.Hash()
	before, _ := hashes(s, sampled)
	visits := 0
	s.EachImage(sampled, func(img *FS) bool {
		only, stats := hashes(img, ImageOptions{Garbage: true})
		if stats.Distinct != 1 || only[0] != img.Hash() {
			t.Fatalf("a fresh image has something in flight: %+v", stats)
		}
		f, err := img.Dir().Open("f", disk.ReadWrite)
		need(t, err)
		write(t, f, 'y', 0, 1500)
		need(t, f.Truncate(700))
		if _, stats := hashes(img, ImageOptions{MaxBits: 20}); stats.Distinct < 4 || !stats.Exhaustive {
			t.Fatalf("second power cut: %+v", stats)
		}
		need(t, f.Sync())
		if _, stats := hashes(img, ImageOptions{}); stats.Distinct != 1 {
			t.Fatalf("after the sync: %+v", stats)
		}
		visits++
		return visits < 20
	})
	if after, _ := hashes(s, sampled); s.Hash() != live || !slices.Equal(before, after) {
		t.Error("the images changed their origin")
	}
}

func TestEachImage_OperationsMeanwhileDoNotShow(t *testing.T) {
	want, _ := hashes(busy(t), sampled)
	s := busy(t)
	f, err := s.Dir().Open("f", disk.ReadWrite)
	need(t, err)
	i := 0
	s.EachImage(sampled, func(img *FS) bool {
		if img.Hash() != want[i] || img.Number() < i {
			t.Fatalf("image %d is another one", i)
		}
		i++
		write(t, f, byte(i), int64(i%3000), 600)
		need(t, f.Sync(), s.Dir().Sync())
		return true
	})
}

func TestClone_OfAnImageStays(t *testing.T) {
	s := busy(t)
	var kept []*FS
	var want [][]uint64
	s.EachImage(sampled, func(img *FS) bool {
		f, err := img.Dir().Open("f", disk.ReadWrite)
		need(t, err)
		write(t, f, 'y', 0, 100)
		list, _ := hashes(img, ImageOptions{})
		kept, want = append(kept, img.Clone()), append(want, append(list, img.Hash()))
		return len(kept) < 50
	})
	for i, c := range kept {
		if list, _ := hashes(c, ImageOptions{}); !slices.Equal(append(list, c.Hash()), want[i]) {
			t.Fatalf("clone %d changed", i)
		}
	}
}

func TestClone_IsIndependent(t *testing.T) {
	s := busy(t)
	c := s.Clone()
	live := c.Hash()
	before, _ := hashes(c, sampled)
	f, err := s.Dir().Open("f", disk.ReadWrite)
	need(t, err)
	write(t, f, 'z', 0, 4000)
	need(t, f.Sync(), s.Dir().Remove("h"), s.Dir().Sync())
	if after, _ := hashes(c, sampled); c.Hash() != live || !slices.Equal(before, after) {
		t.Error("the clone changed with its origin")
	}
	if !strings.HasPrefix(c.Log(), "#1 write f [500, 2500)") {
		t.Errorf("the clone's log does not tell its history:\n%s", c.Log())
	}
}

func TestWriteFile_IsDurable(t *testing.T) {
	s := busy(t)
	s.WriteFile("f", []byte("tide"))
	s.WriteFile("h", []byte("mark"))
	s.EachImage(sampled, func(img *FS) bool {
		f, _ := img.ReadFile("f")
		h, _ := img.ReadFile("h")
		if string(f) != "tide" || string(h) != "mark" {
			t.Fatalf("f = %q, h = %q\n%s", f, h, img.Log())
		}
		return true
	})
}

func TestLog_TellsHowAnImageCameToBe(t *testing.T) {
	s := New()
	f := create(t, s, "log", []byte("a"))
	write(t, f, 'b', 0, 600)
	last := ""
	s.EachImage(ImageOptions{}, func(img *FS) bool {
		need(t, img.Dir().Remove("log"))
		last = img.Log()
		return true
	})
	want := `#1 write log [0, 600)
power cut: image 7
  size of file 0 (log): 600, version 1 of 1
  sector 0 of file 0 (log): version 1 of 1
  sector 1 of file 0 (log): version 1 of 1
#1 remove log
`
	if last != want {
		t.Errorf("log:\n%s\nwant:\n%s", last, want)
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
