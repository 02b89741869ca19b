package simdisk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// naive is the model as one would write it down first: a list of atoms and
// every subset of them. It shares no code with the simulator.
type naive struct {
	disk, live []byte // padded to whole sectors; with their sizes
	diskSize   int
	size       int
	atoms      []naiveAtom
}

type naiveAtom struct {
	sector  int // -1: a size
	content [SectorSize]byte
	size    int
	isLost  bool
}

const naiveSectors = 4

func newNaive() *naive {
	n := naiveSectors * SectorSize
	return &naive{disk: make([]byte, n), live: make([]byte, n)}
}

func (m *naive) sector(i int) {
	m.atoms = append(m.atoms, naiveAtom{sector: i, content: [SectorSize]byte(m.live[i*SectorSize:])})
}

func (m *naive) resize(size int) {
	lost := slices.ContainsFunc(m.atoms, func(a naiveAtom) bool { return a.sector < 0 && a.isLost })
	if size != m.size || lost {
		m.size = size
		m.atoms = append(m.atoms, naiveAtom{sector: -1, size: size})
	}
}

func (m *naive) write(b byte, off, n int) {
	for i := off; i < off+n; i++ {
		m.live[i] = b
	}
	for i := off / SectorSize; i*SectorSize < off+n; i++ {
		m.sector(i)
	}
	if off+n >= m.size {
		m.resize(off + n)
	}
}

func (m *naive) truncate(size int) {
	for i := range naiveSectors {
		if size < m.size && (i+1)*SectorSize > size && i*SectorSize < m.size {
			clear(m.live[max(size, i*SectorSize) : (i+1)*SectorSize])
			m.sector(i)
		}
	}
	m.resize(size)
}

func (m *naive) sync(ok bool) {
	if !ok {
		for i := range m.atoms {
			m.atoms[i].isLost = true
		}
		return
	}
	settled := map[int]bool{}
	for _, a := range m.atoms {
		if a.isLost {
			continue
		}
		settled[a.sector] = true
		if a.sector < 0 {
			m.diskSize = a.size
		} else {
			copy(m.disk[a.sector*SectorSize:], a.content[:])
		}
	}
	m.atoms = slices.DeleteFunc(m.atoms, func(a naiveAtom) bool { return settled[a.sector] })
}

func (m *naive) images() []string {
	var list []string
	for set := range 1 << len(m.atoms) {
		disk, size := slices.Clone(m.disk), m.diskSize
		for i, a := range m.atoms {
			switch {
			case set>>i&1 == 0:
			case a.sector < 0:
				size = a.size
			default:
				copy(disk[a.sector*SectorSize:], a.content[:])
			}
		}
		list = append(list, string(disk[:size]))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Random short histories have the same images in the simulator and in the
// naive model.
func TestImages_AgreeWithNaiveModel(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, m := New(), newNaive()
		f := create(t, s, "f", nil)
		var history strings.Builder
		for step := 0; step < 15 && len(m.atoms) < 8; step++ {
			off := rng.IntN(naiveSectors*SectorSize - 1)
			n := 1 + rng.IntN(min(2*SectorSize, naiveSectors*SectorSize-off))
			switch op := rng.IntN(8); op {
			case 0, 1, 2, 3:
				history.WriteString(fmt.Sprintf("write %c [%d, %d)\n", 'a'+step, off, off+n))
				write(t, f, byte('a'+step), int64(off), int64(n))
				m.write(byte('a'+step), off, n)
			case 4:
				history.WriteString(fmt.Sprintf("truncate %d\n", off))
				need(t, f.Truncate(int64(off)))
				m.truncate(off)
			case 5:
				history.WriteString("failing sync\n")
				s.Inject(Fault{Kind: OpSync})
				_ = f.Sync()
				m.sync(false)
			default:
				history.WriteString("sync\n")
				need(t, f.Sync())
				m.sync(true)
			}
			if live, _ := s.ReadFile("f"); string(live) != string(m.live[:m.size]) {
				t.Fatalf("seed %d: the running systems differ after\n%s", seed, history.String())
			}
		}
		if got, want := imageContents(t, s), m.images(); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d images, the naive model has %d, after\n%s", seed, len(got), len(want), history.String())
		}
	}
}

// imageContents lists what the images hold of the file f.
func imageContents(t *testing.T, s *FS) []string {
	t.Helper()
	var list []string
	stats := s.EachImage(ImageOptions{MaxBits: 20}, func(img *FS) bool {
		b, err := img.ReadFile("f")
		need(t, err)
		list = append(list, string(b))
		return true
	})
	if !stats.Exhaustive || stats.Distinct != len(list) {
		t.Fatalf("%+v for %d images", stats, len(list))
	}
	slices.Sort(list)
	if len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Fatal("an image was visited twice")
	}
	return list
}
