package pagelog

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
	"github.com/zeebo/xxh3"
)

// groups lists the groups of the log file, bodies left out.
func (s *sim) groups() []passed {
	s.t.Helper()
	f, err := s.fs.Dir().Open(logName, disk.ReadOnly)
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := readHeader(f)
	if err != nil {
		s.t.Fatal(err)
	}
	w := walker{geo: h.geo, win: window{r: f, limit: h.size, chunk: readChunk}, at: h.begin()}
	var list []passed
	for w.next() == nil {
		p := w.cur
		p.body = nil
		list = append(list, p)
	}
	return list
}

// geometry returns the geometry of the log file.
func (s *sim) geometry() *frame.Geometry {
	id, err := frame.DecodeIdentity(s.bytes())
	if err != nil {
		s.t.Fatal(err)
	}
	return id.Geometry()
}

// sizes is a log of several shapes of groups: within a sector, over one, over a
// page, over several pages, ending at edges.
var sizes = []int{1, 376, 100, 3960, 20, 9000, 0, 512}

// acknowledged makes a closed log of these commits: every byte of them is
// proven by a slot.
func acknowledged(t testing.TB, o Options) *sim {
	s := newSim(t)
	l := s.create(small, o)
	for i, n := range sizes {
		commit(t, l, payload(i, n))
	}
	closeLog(t, l)
	return s
}

// unacknowledged makes a log whose last commits, of these sizes, were written
// and never synced, and whose process died.
func unacknowledged(t testing.TB, last ...int) *sim {
	s := newSim(t)
	l := s.create(small, Options{})
	for i, n := range sizes {
		commit(t, l, payload(i, n))
	}
	complete(t, l, payload(77, 8)) // its header proves everything before it
	for i, n := range last {
		complete(t, l, payload(100+i, n))
	}
	s.fs.Kill()
	return s
}

// optionSets are the ways to open a log that could make a difference.
var optionSets = []Options{
	{},
	{ZeroAhead: ZeroAheadOff},
	{ZeroAhead: ZeroAheadOn, MaxUnsynced: 1},
	{CheckpointEvery: -1},
	{CheckpointEvery: 1, MaxUnsynced: 1 << 40},
	{AllowAnyFileSystem: true, Expect: &Expect{}},
}

// C11, C12, C17, C18, L2, L26: every byte of acknowledged history with a bit
// flipped, opened with every set of options: the writer refuses with the place,
// changes nothing, and a reader serves what is sound before it.
func TestC11_EveryFlippedByteIsCorruptWithItsPlace(t *testing.T) {
	s := acknowledged(t, Options{})
	list, geo := s.groups(), s.geometry()
	s.put(s.bytes()[:list[len(list)-1].end]) // without the zeros ahead it is quicker
	whole := s.bytes()
	var texts []string
	for i, n := range sizes {
		texts = append(texts, string(payload(i, n))+"|")
	}
	step := int64(1)
	if testing.Short() || raceEnabled {
		step = 17
	}
	for off := geo.HeaderArea(); off < list[len(list)-1].end; off += step {
		s.flip(off, 1<<(off%8))
		g := list[slices.IndexFunc(list, func(p passed) bool { return off < p.end })]
		o := optionSets[int(off/step)%len(optionSets)]
		if off%geo.PageSize() < frame.PageHeaderSize { // derived, and below the proven end: history goes on
			l := s.open(o)
			if got, err := contents(l.Reader, 0); err != nil || !slices.Equal(got, texts) {
				t.Fatalf("page header at %d: %d commits, %v", off, len(got), err)
			}
			s.put(whole)
			continue
		}
		var c *CorruptError
		err := s.refused(o, ErrCorrupt)
		if !errors.As(err, &c) || c.Revision != g.Revision || c.Offset < g.before.end || c.Offset > g.end || c.Page != geo.Page(c.Offset) {
			t.Fatalf("offset %d, in revision %d [%d, %d): %v", off, g.Revision, g.before.end, g.end, err)
		}
		got, err := contents(s.reader(ReaderOptions{Durable: off%2 == 0}), 0)
		if !errors.Is(err, ErrCorrupt) || !slices.Equal(got, texts[:g.Revision-1]) {
			t.Fatalf("offset %d: a reader got %d commits, then %v", off, len(got), err)
		}
		s.put(whole)
	}
}

// L2: bytes between groups are zero, and checked.
func TestL2_PaddingIsChecked(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{PageSize: 4096, Align: 512}, Options{})
	for i := range 6 {
		commit(t, l, payload(i, 100+i*900))
	}
	closeLog(t, l)
	list := s.groups()
	s.put(s.bytes()[:list[len(list)-1].end])
	whole := s.bytes()
	checked := 0
	for i, g := range list[1:] {
		for off := g.before.end; off < g.start; off += 5 {
			if off%4096 < frame.PageHeaderSize {
				continue
			}
			s.flip(off, 1)
			var c *CorruptError
			if err := s.refused(Options{}, ErrCorrupt); !errors.As(err, &c) || c.Revision != uint64(i+2) {
				t.Fatalf("padding at %d, behind revision %d: %v", off, i+1, err)
			}
			if got, err := contents(s.reader(ReaderOptions{}), 0); !errors.Is(err, ErrCorrupt) || len(got) != i+1 {
				t.Fatalf("padding at %d: a reader got %d commits, %v", off, len(got), err)
			}
			s.put(whole)
			checked++
		}
	}
	if checked < 100 {
		t.Fatalf("only %d bytes of padding", checked)
	}
}

// A page header above the proven end makes its group torn, as any other byte
// of it would; below it, the page header alone is lost.
func TestL26_PageHeaderAboveTheProvenEnd(t *testing.T) {
	s := unacknowledged(t, 9000, 10)
	whole := s.bytes()
	list := s.groups()
	big := list[len(list)-2]
	for page := s.geometry().HeaderArea(); page < list[len(list)-1].end; page += 4096 {
		for _, off := range []int64{0, 5, 9, 17, 31} {
			b := bytes.Clone(whole)
			b[page+off] ^= 0x10
			s.put(b)
			l := s.open(Options{})
			r := l.Report()
			want := uint64(len(list))
			if page > big.start {
				want = big.Revision - 1
			}
			if r.Head != want || (want != uint64(len(list))) != (r.Torn > 0) {
				t.Fatalf("page %d, byte %d: %+v, want head %d", page/4096, off, r, want)
			}
			commit(t, l, []byte("on"))
			s.fs.Kill()
			if h := s.open(Options{}).Head(); h.Revision != want+1 {
				t.Fatal(h)
			}
		}
	}
}

// C19: without any slot, what later headers say must be enough.
func TestC19_LaterHeadersProveWhatIsDamaged(t *testing.T) {
	s := unacknowledged(t)
	whole := s.bytes()
	list := s.groups()
	for _, bothSlots := range []bool{false, true} {
		for i, g := range list[:len(list)-1] {
			for _, off := range []int64{g.start, g.start + 20, g.start + 60, g.end - 1 - g.end%8} {
				b := bytes.Clone(whole)
				if bothSlots {
					b[frame.SlotOffsetA]++
					b[frame.SlotOffsetB]++
				}
				b[off] ^= 0x40
				s.put(b)
				var c *CorruptError
				if err := s.refused(Options{}, ErrCorrupt); !errors.As(err, &c) || c.Revision != uint64(i+1) {
					t.Fatalf("group %d, offset %d, both slots damaged %v: %v", i, off, bothSlots, err)
				}
			}
		}
	}
}

// L27: damage to both slots, or to one copy of the identity, still opens.
func TestL27_HeaderAreaDamage(t *testing.T) {
	s := acknowledged(t, Options{})
	whole := s.bytes()
	for _, c := range []struct {
		name          string
		offs          []int64
		slots, copies int
		want          error
	}{
		{"slot 0", []int64{frame.SlotOffsetA + 60}, 1, 0, nil},
		{"slot 1", []int64{frame.SlotOffsetB + 60}, 1, 0, nil},
		{"both slots", []int64{frame.SlotOffsetA, frame.SlotOffsetB + 500}, 2, 0, nil},
		{"identity", []int64{100}, 0, 1, nil},
		{"its copy", []int64{frame.IdentityCopyOffset + 4000}, 0, 1, nil},
		{"both slots and a copy", []int64{frame.SlotOffsetA, frame.SlotOffsetB, 7}, 2, 1, nil},
		{"both copies", []int64{3000, frame.IdentityCopyOffset + 3000}, 0, 0, ErrNotALog},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bytes.Clone(whole)
			for _, off := range c.offs {
				b[off] ^= 1
			}
			s.put(b)
			s.t = t
			if c.want != nil {
				s.refused(Options{}, c.want)
				return
			}
			if got, err := contents(s.reader(ReaderOptions{}), 0); err != nil || len(got) != len(sizes) {
				t.Fatal(len(got), err)
			}
			l := s.open(Options{})
			if r := l.Report(); r.BadSlots != c.slots || r.BadCopies != c.copies || r.Head != uint64(len(sizes)) {
				t.Fatalf("%+v", r)
			}
			commit(t, l, []byte("on"))
			closeLog(t, l)
			if h := s.open(Options{}).Head(); h.Revision != uint64(len(sizes)+1) {
				t.Fatal(h)
			}
		})
	}
	t.Run("both slots of an empty log", func(t *testing.T) {
		s := newSim(t)
		closeLog(t, s.create(small, Options{}))
		b := s.bytes()
		b[frame.SlotOffsetA]++
		b[frame.SlotOffsetB]++
		s.put(b)
		s.refused(Options{}, ErrCorrupt)
	})
}

// C1, C20: any subset of the sectors of the last, unacknowledged group is
// missing or garbled: the group is absent, everything before is there, opening
// needs no flag and says torn.
func TestC1_AnySubsetOfTheLastGroupsSectors(t *testing.T) {
	s := unacknowledged(t, 1900)
	whole := s.bytes()
	last := s.groups()[len(sizes)+1]
	from, to := last.start/512, (last.end+511)/512
	for kind, fill := range [][]byte{make([]byte, 512), payload(5, 512)} {
		for mask := 1; mask < 1<<(to-from); mask++ {
			b := bytes.Clone(whole)
			for i := from; i < to; i++ {
				if mask>>(i-from)&1 != 0 {
					a := max(i*512, last.before.end) // what is acknowledged in the sector stays: assumption A1
					copy(b[a:(i+1)*512], fill)
				}
			}
			s.put(b)
			l := s.open(optionSets[mask%len(optionSets)])
			r := l.Report()
			if r.Head != uint64(len(sizes)+1) || r.Torn == 0 && mask != 1<<(to-from)-1 {
				t.Fatalf("kind %d, subset %b: %+v", kind, mask, r)
			}
			if kind == 1 && (r.Torn == 0 || r.TornWhat == "") {
				t.Fatalf("subset %b: the report says nothing of it: %+v", mask, r)
			}
			if got, err := contents(l.Reader, 0); err != nil || len(got) != len(sizes)+1 {
				t.Fatal(len(got), err)
			}
		}
	}
}

// C2, C8: bytes behind the last group, zero and not, neither move the place of
// the next commit nor come back later.
func TestC2_LeftoversBehindTheEndAreErased(t *testing.T) {
	s := unacknowledged(t, 300, 700, 100)
	list := s.groups()
	whole := s.bytes()[:list[len(list)-1].end]
	b := bytes.Clone(whole)
	b[list[len(list)-3].start] ^= 1 // the first of the three is torn; the others are leftovers
	b = append(b, make([]byte, 640)...)
	b = append(b, payload(9, 1000)...)
	s.put(b)
	end := list[len(list)-4].end
	for cycle := range 3 {
		l := s.open(Options{ZeroAhead: ZeroAheadOff})
		n := len(sizes) + 1 + cycle
		if got, err := contents(l.Reader, 0); err != nil || len(got) != n {
			t.Fatalf("cycle %d: %d commits of %d, %v", cycle, len(got), n, err)
		}
		if int64(len(s.bytes())) != end {
			t.Fatalf("cycle %d: the file has %d bytes, its history ends at %d", cycle, len(s.bytes()), end)
		}
		c := commit(t, l, payload(cycle, 40)) // shorter than what lay there
		if c.Revision != uint64(n+1) || l.head.end > end+200 {
			t.Fatalf("cycle %d: %+v ends at %d", cycle, c, l.head.end)
		}
		end = l.head.end
		s.fs.Kill()
	}
}

// C3: a file that ends exactly behind its last group, in the middle of a page,
// at a sector's and at a page's edge.
func TestC3_FileEndsWithItsLastGroup(t *testing.T) {
	for _, n := range []int{1, 376, 3960 - 512, 3960, 3952, 3944, 3960 + 4064, 5000} {
		s := newSim(t)
		l := s.create(small, Options{})
		commit(t, l, payload(1, n))
		end := l.head.end
		closeLog(t, l)
		s.put(s.bytes()[:end])
		for i := range 3 {
			l := s.open(Options{ZeroAhead: ZeroAheadOff})
			if got, err := contents(l.Reader, 0); err != nil || len(got) != i+1 || got[0] != string(payload(1, n))+"|" {
				t.Fatalf("%d bytes, opened %d times: %d commits, %v", n, i+1, len(got), err)
			}
			commit(t, l, []byte("behind"))
			closeLog(t, l)
		}
	}
}

// C4: zeros at or above the proven end are torn, zeros below it are corrupt.
func TestC4_ZerosAboveAndBelowTheProvenEnd(t *testing.T) {
	s := unacknowledged(t, 700, 20)
	whole := s.bytes()
	list := s.groups()
	proven := list[len(sizes)-1].end
	for off := s.geometry().HeaderArea(); off < list[len(list)-1].end; off += 512 {
		b := bytes.Clone(whole)
		from := off
		if off < proven && off+512 > proven {
			from = proven
		}
		clear(b[from : off+512])
		s.put(b)
		if from < proven {
			s.refused(Options{}, ErrCorrupt)
			continue
		}
		l := s.open(Options{})
		if r := l.Report(); r.Head < uint64(len(sizes)) || r.Head >= uint64(len(list)) {
			t.Fatalf("zeros at %d: %+v", from, r)
		}
	}
}

// C5, L29: what is not a log is told apart, and nothing is written to it.
func TestC5_FilesThatAreNoLogs(t *testing.T) {
	log := acknowledged(t, Options{}).bytes()
	newer := bytes.Clone(log)
	for _, off := range []int{frame.IdentityOffset, frame.IdentityCopyOffset} {
		sealIdentity(newer[off:], func(b []byte) { b[8]++ })
	}
	feature := func(at int) []byte {
		b := bytes.Clone(log)
		for _, off := range []int{frame.IdentityOffset, frame.IdentityCopyOffset} {
			sealIdentity(b[off:], func(b []byte) { b[at] = 0x40 })
		}
		return b
	}
	for _, c := range []struct {
		name string
		file []byte
		want error
		text string
	}{
		{"empty", nil, ErrNotALog, "empty"},
		{"zero", make([]byte, 70000), ErrNotALog, "zero bytes"},
		{"short zero", make([]byte, 3), ErrNotALog, "zero bytes"},
		{"foreign", []byte(strings.Repeat("some other file\n", 3000)), ErrNotALog, "does not begin"},
		{"one byte", []byte{1}, ErrNotALog, "does not begin"},
		{"cut in the identity", log[:100], ErrNotALog, ""},
		{"cut in the header area", log[:9000], ErrNotALog, "cut off"},
		{"cut one byte before its end", log[:16383], ErrNotALog, "cut off"},
		{"newer", newer, ErrUnsupported, "version"},
		{"unknown incompatible feature", feature(32), ErrUnsupported, "incompatible features 0x40"},
		{"unknown read-only-compatible feature", feature(24), ErrUnsupported, "read-only-compatible features 0x40"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(t)
			s.put(c.file)
			if err := s.refused(Options{}, c.want); !strings.Contains(err.Error(), c.text) {
				t.Errorf("writer: %v", err)
			}
			r, err := OpenReaderIn(s.env(), logName, ReaderOptions{})
			if strings.HasPrefix(c.name, "unknown read-only") { // reading is fine
				if got, err2 := contents(r, 0); err != nil || err2 != nil || len(got) != len(sizes) {
					t.Errorf("reader: %d commits, %v, %v", len(got), err, err2)
				}
			} else if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("reader: %v", err)
			}
		})
	}
	t.Run("unknown compatible feature", func(t *testing.T) {
		s := newSim(t)
		s.put(feature(16))
		l := s.open(Options{})
		commit(t, l, []byte("on"))
		closeLog(t, l)
	})
}

// sealIdentity edits an identity and gives it a good sum again.
func sealIdentity(b []byte, edit func([]byte)) {
	edit(b)
	sum := xxh3.Hash(b[:frame.IdentitySize-8])
	for i := range 8 {
		b[frame.IdentitySize-8+i] = byte(sum >> (8 * i))
	}
}

// C6: zeros never decode as a commit, and a file a byte short still opens with
// what is whole.
func TestC6_TrailingZerosAndAMissingByte(t *testing.T) {
	s := unacknowledged(t, 64)
	list := s.groups()
	end := list[len(list)-1].end
	for _, zeros := range []int{1, 7, 8, 64, 512, 5000} {
		s.put(append(bytes.Clone(s.bytes()[:end]), make([]byte, zeros)...))
		if h := s.open(Options{}).Head(); h.Revision != uint64(len(list)) {
			t.Fatalf("%d zeros: %+v", zeros, h)
		}
	}
	whole := bytes.Clone(s.bytes()[:end])
	for missing := int64(1); missing < end-list[len(list)-2].end; missing++ {
		s.put(whole[:end-missing])
		if h := s.open(Options{}).Head(); h.Revision != uint64(len(list)-1) && missing > 8 || h.Revision < uint64(len(list)-1) {
			t.Fatalf("%d bytes short: %+v", missing, h)
		}
		s.put(whole)
	}
}

// C9, L4: lengths that lie, under good sums: no panic, and no memory beyond
// what the file could hold.
func TestC9_LyingLengths(t *testing.T) {
	s := acknowledged(t, Options{})
	whole := s.bytes()
	list, geo := s.groups(), s.geometry()
	last := list[len(list)-1]
	at := geo.Start(last.end)
	for _, body := range []int64{-8, 0, 24, 32, 1 << 12, 1 << 20, 1 << 26, 1 << 31, 1 << 40, 1<<63 - 8} {
		for _, length := range []uint32{0, 8, 1 << 16, 1 << 30, 1<<32 - 1} {
			h := frame.GroupHeader{
				Count: 1, Revision: last.Revision + 1, Body: body, Prev: last.Digest, Epoch: last.Epoch, DurableEnd: last.end,
			}
			b := append(bytes.Clone(whole[:last.end]), make([]byte, 4096)...)
			geo.PutGroup(b[at:], at, &h)
			for i := range 4 {
				b[at+frame.GroupHeaderSize+int64(i)] = byte(length >> (8 * i))
			}
			s.put(b)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			l := s.open(Options{})
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
				t.Fatalf("body %d, length %d: opening took %d bytes", body, length, used)
			}
			if got := l.Head().Revision; got != last.Revision {
				t.Fatalf("body %d, length %d: head %d", body, length, got)
			}
			if got, err := contents(l.Reader, 0); err != nil || len(got) != len(sizes) {
				t.Fatal(len(got), err)
			}
		}
	}
}

// C14, C15: a page in the middle of a group over several pages is lost: none of
// the group is seen, nor anything behind it.
func TestC14_MiddlePageLost(t *testing.T) {
	for _, acked := range []bool{true, false} {
		s := newSim(t)
		l := s.create(small, Options{})
		commit(t, l, payload(1, 10))
		big := [][]byte{payload(2, 3000), payload(3, 3000), payload(4, 3000), payload(5, 3000), payload(6, 3000)}
		if acked {
			commit(t, l, big...)
			commit(t, l, payload(7, 10))
			closeLog(t, l)
		} else {
			complete(t, l, big...)
		}
		whole := s.bytes()
		g := s.groups()[1]
		for page := g.start/4096 + 1; page < g.end/4096; page++ {
			for _, fill := range [][]byte{make([]byte, 4096), payload(8, 4096), whole[(page-1)*4096 : page*4096], whole[(page+1)*4096 : (page+2)*4096]} {
				b := bytes.Clone(whole)
				copy(b[page*4096:], fill)
				s.put(b)
				got, err := contents(s.reader(ReaderOptions{}), 0)
				if len(got) != 1 || errors.Is(err, ErrCorrupt) != acked {
					t.Fatalf("page %d, acknowledged %v: a reader got %d commits, %v", page, acked, len(got), err)
				}
				if acked {
					s.refused(Options{}, ErrCorrupt)
					continue
				}
				l := s.open(Options{})
				if r := l.Report(); r.Head != 1 || r.Torn == 0 {
					t.Fatalf("page %d: %+v", page, r)
				}
			}
		}
	}
}

// C17, C31, C32, C36: groups that are valid where they came from, at the exact
// end of the log: of an earlier epoch, of another log, from earlier in this
// file, and old ones of this file at this place. None is adopted, and none keeps
// the log from opening.
func TestC31_GroupsThatDoNotBelong(t *testing.T) {
	s := unacknowledged(t)
	whole := s.bytes()
	list, geo := s.groups(), s.geometry()
	last := list[len(list)-1]
	at := geo.Start(last.end)
	raw := func(p passed) []byte { return whole[p.start:p.end] }
	other := newSim(t)
	other.dice.state = 4242
	ol := other.create(small, Options{})
	for i, n := range sizes {
		commit(t, ol, payload(i, n))
	}
	complete(t, ol, payload(77, 8))
	complete(t, ol, payload(78, 8))
	foreign := other.groups()[len(sizes)+1]
	if foreign.start != at {
		t.Fatalf("the other log's group begins at %d, not at %d", foreign.start, at)
	}
	fake := func(edit func(*frame.GroupHeader)) []byte {
		body := frame.AppendRecord(nil, 0, 0, frame.Plain, []byte("fake"))
		h := frame.GroupHeader{
			Count: 1, Revision: last.Revision + 1, Body: int64(len(body)), Prev: last.Digest, Epoch: last.Epoch, DurableEnd: geo.HeaderArea(),
		}
		edit(&h)
		h.Digest = h.ChainDigest(body)
		b := make([]byte, frame.GroupHeaderSize, 200)
		geo.PutGroup(b, at, &h)
		return append(b, body...)
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"from earlier in this file", raw(list[2]), nil},
		{"the last one again", raw(last), nil},
		{"another log's, same place", other.bytes()[foreign.start:foreign.end], nil},
		{"an earlier epoch, chain and all", fake(func(h *frame.GroupHeader) { h.Epoch-- }), nil},
		{"an earlier epoch, another chain", fake(func(h *frame.GroupHeader) { h.Epoch--; h.Prev++ }), nil},
		{"this epoch, another chain", fake(func(h *frame.GroupHeader) { h.Prev++ }), ErrDiverged},
		{"this epoch, a revision skipped", fake(func(h *frame.GroupHeader) { h.Revision++ }), ErrDiverged},
		{"durable beyond itself", fake(func(h *frame.GroupHeader) { h.DurableEnd = at + 8 }), nil},
		{"a derived one, wrong revision, earlier epoch", fake(func(h *frame.GroupHeader) { h.Flags, h.Epoch = frame.FlagDerived, 0 }), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := append(bytes.Clone(whole[:last.end]), make([]byte, 8192)...)
			copy(b[at:], c.b)
			s.t = t
			s.put(b)
			if c.want != nil {
				s.refused(Options{}, c.want)
				return
			}
			got, err := contents(s.reader(ReaderOptions{}), 0)
			if err != nil || len(got) != len(list) {
				t.Fatalf("a reader got %d commits of %d, %v", len(got), len(list), err)
			}
			l := s.open(Options{})
			if r := l.Report(); r.Head != last.Revision || r.Torn == 0 {
				t.Fatalf("%+v", r)
			}
			commit(t, l, []byte("mine"))
			closeLog(t, l)
			if got, err := contents(s.reader(ReaderOptions{}), last.Revision); err != nil || len(got) != 1 || got[0] != "mine|" {
				t.Fatal(got, err)
			}
		})
	}
	if c := fake(func(*frame.GroupHeader) {}); c != nil { // the forgery is good: without a lie it is adopted
		b := append(bytes.Clone(whole[:last.end]), make([]byte, 8192)...)
		copy(b[at:], c)
		s.t = t
		s.put(b)
		if h := s.open(Options{}).Head(); h.Revision != last.Revision+1 {
			t.Fatal("the forged group is not one")
		}
	}
}

// C34, L5: payloads that are byte-exact copies of the file's own structures,
// also of what will lie at their own place.
func TestC34_PayloadsThatLookLikeTheLog(t *testing.T) {
	s := acknowledged(t, Options{})
	file := s.bytes()
	list := s.groups()
	l := s.open(Options{})
	copies := [][]byte{
		file[:4096], file[frame.SlotOffsetA : frame.SlotOffsetA+512], file[frame.SlotOffsetB : frame.SlotOffsetB+512],
		file[16384 : 16384+4096], file[list[1].start:list[1].end], file[list[5].start:list[5].end], file[:list[3].end],
	}
	for i, c := range copies {
		commit(t, l, c)
		complete(t, l, append(payload(i, 8*i+4), c...))
		commit(t, l, c[:len(c)/2], c[len(c)/2:])
	}
	n := len(sizes) + 3*len(copies)
	s.fs.Kill()
	for range 2 {
		got, err := contents(s.reader(ReaderOptions{}), 0)
		if err != nil || len(got) != n {
			t.Fatal(len(got), err)
		}
		l := s.open(Options{})
		for i, c := range copies {
			if at := len(sizes) + 3*i; got[at] != string(c)+"|" || got[at+2] != string(c[:len(c)/2])+"|"+string(c[len(c)/2:])+"|" {
				t.Fatalf("copy %d reads back otherwise", i)
			}
		}
		closeLog(t, l)
	}
	// And torn: the copies inside a damaged group are not resynchronised to.
	l = s.open(Options{})
	complete(t, l, file[16384:list[3].end])
	end := l.head.end
	s.fs.Kill()
	s.flip(end-8, 4)
	if h := s.open(Options{}).Head(); h.Revision != uint64(n) {
		t.Fatal(h)
	}
}

// C24, L31: a disk that lied. What slots and headers no longer prove, the host
// can still ask for.
func TestC24_ExpectKnowsWhatTheDiskForgot(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("1"))
	old := s.bytes()
	two := commit(t, l, []byte("2"))
	three := commit(t, l, []byte("3"))
	closeLog(t, l)
	whole := s.bytes()

	s.put(old) // restored, or never on the disk
	var lost *LostError
	err := s.refused(Options{Expect: &Expect{three.Revision, three.Digest}}, ErrLostCommits)
	if !errors.As(err, &lost) || lost.Have != 1 || lost.Want != 3 {
		t.Fatal(err)
	}
	l = s.open(Options{})
	other := commit(t, l, []byte("another 2"))
	closeLog(t, l)
	s.refused(Options{Expect: &Expect{two.Revision, two.Digest}}, ErrDiverged)
	closeLog(t, s.open(Options{Expect: &Expect{other.Revision, other.Digest}}))

	s.put(whole)
	for _, c := range []Commit{two, three} {
		closeLog(t, s.open(Options{Expect: &Expect{c.Revision, c.Digest}}))
	}
	closeLog(t, s.open(Options{Expect: &Expect{}}))

	based := newSim(t)
	base := cursor.Cursor{Position: cursor.Position{Log: cursor.LogID{1}, Revision: 100}, Digest: 7}
	closeLog(t, based.create(CreateOptions{Base: base}, Options{}))
	based.refused(Options{Expect: &Expect{Revision: 99}}, ErrCompacted)
	based.refused(Options{Expect: &Expect{Revision: 101}}, ErrLostCommits)
	based.refused(Options{Expect: &Expect{Revision: 100, Digest: 8}}, ErrDiverged)
	closeLog(t, based.open(Options{Expect: &Expect{Revision: 100, Digest: 7}}))
}

// C16, C39: the bytes of a group arrive in any order, as another process may
// see them: a reader says "not yet", and then has it, once.
func TestC39_GroupsArriveInPieces(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, payload(0, 10))
	before := s.bytes()
	for i, n := range []int{300, 2500, 9000, 30} {
		complete(t, l, payload(i, n))
	}
	after := s.bytes()[:l.head.end]
	before = before[:l.head.end]
	d := dice{state: 1}
	rounds := 18
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		w := newSim(t)
		w.put(before)
		readers := []*Reader{w.reader(ReaderOptions{}), w.reader(ReaderOptions{Durable: true})}
		var order []int
		const piece = 8 * 13 // of headers, too
		for at := 16384; at < len(after); at += piece {
			if to := min(at+piece, len(after)); !bytes.Equal(before[at:to], after[at:to]) {
				order = append(order, at)
			}
		}
		for i := range order {
			j := i + int(d.next()%uint64(len(order)-i))
			if round%3 != 0 { // nearly in order
				j = min(len(order)-1, i+int(d.next()%3))
			}
			order[i], order[j] = order[j], order[i]
		}
		f, err := w.fs.Dir().Open(logName, disk.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		head := uint64(1)
		for _, at := range order {
			if _, err := f.WriteAt(after[at:min(at+piece, len(after))], int64(at)); err != nil {
				t.Fatal(err)
			}
			h, err := readers[0].Head()
			if err != nil || h.Revision < head {
				t.Fatalf("round %d: head %d, then %+v, %v", round, head, h, err)
			}
			head = h.Revision
			if h, err := readers[1].Head(); err != nil || h.Revision > 1 {
				t.Fatalf("round %d: a durable reader: %+v, %v", round, h, err)
			}
		}
		if got, err := contents(readers[0], 0); err != nil || len(got) != 5 {
			t.Fatal(len(got), err)
		}
	}
}

// C26, C27, L29, L30: creation is atomic, and whoever opens a log makes its name
// durable.
func TestC27_OpenMakesTheNameDurable(t *testing.T) {
	s := newSim(t)
	s.fs.Inject(simdisk.Fault{Kind: simdisk.OpSyncDir, Forever: true})
	if _, err := CreateIn(s.env(), logName, small, Options{}); err == nil {
		t.Fatal("created, although the directory was never synced")
	}
	fs2 := s.fs
	fs2.Kill() // the creator is dead, its log is there and its name is not durable
	s = &sim{t: t, fs: fs2.Clone()}
	l := s.open(Options{})
	commit(t, l, []byte("x"))
	s.fs.Kill()
	s.fs.EachImage(simdisk.ImageOptions{Mode: simdisk.Both}, func(img *simdisk.FS) bool {
		w := &sim{t: t, fs: img}
		if h := w.open(Options{}).Head(); h.Revision != 1 {
			t.Fatal(h)
		}
		return true
	})
}

func TestC26_CreationIsAtomic(t *testing.T) {
	slowRace(t)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			crashAll(t, []string{""}, func(c *crash) { v.setup(c); c.gate(); c.nest = 1 })
		})
	}
}

// C28, C29, L15: space runs out at every point of a run: what was rejected is
// never seen, what was acknowledged stays, and the writer goes on by itself when
// there is space again.
func TestC28_SpaceRunsOutEverywhere(t *testing.T) {
	slowRace(t)
	for _, zero := range []ZeroAhead{ZeroAheadOn, ZeroAheadOff} {
		for sectors := int64(32); sectors < 32+150; sectors++ {
			s := newSim(t)
			s.fs.Capacity = 1 << 30
			l := s.create(small, Options{ZeroAhead: zero})
			s.fs.Capacity = sectors * 512
			var want []string
			for i, n := range []int{700, 9000, 300000, 40, 6000, 20} {
				p := payload(i, n)
				_, err := l.Commit(ctx0, batchOf(p))
				switch {
				case err == nil:
					want = append(want, string(p)+"|")
				case !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrUncertain):
					t.Fatalf("%d sectors, commit %d: %v", sectors, i, err)
				}
			}
			got, err := contents(s.reader(ReaderOptions{}), 0) // reading needs no space
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%d sectors: %d commits of %d, %v", sectors, len(got), len(want), err)
			}
			s.fs.Capacity = 1 << 30
			commit(t, l, []byte("space again"))
			want = append(want, "space again|")
			s.fs.Kill()
			l = s.open(Options{})
			if got, err := contents(l.Reader, 0); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%d sectors: %d commits of %d, %v", sectors, len(got), len(want), err)
			}
			closeLog(t, l)
		}
	}
}

// C22, L14, L25: a failed sync poisons for good; the next open writes again what
// the failed sync may have left only in memory, and then nothing can be lost.
func TestC22_FailedSyncIsNotForgotten(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	one := commit(t, l, []byte("one"))
	s.fs.Inject(simdisk.Fault{Kind: simdisk.OpSync})
	_, err := l.Commit(ctx0, batchOf([]byte("two")))
	if !errors.Is(err, ErrUncertain) || !errors.Is(err, simdisk.ErrIO) {
		t.Fatal(err)
	}
	ops := s.fs.Ops()
	for range 3 { // a second sync would succeed, and lie
		var p *PoisonedError
		if err := l.Sync(ctx0); !errors.As(err, &p) || p.Durable != one.Revision || !errors.Is(p.Cause, simdisk.ErrIO) {
			t.Fatal(err)
		}
		if _, err := l.Commit(ctx0, batchOf([]byte("three"))); !errors.Is(err, ErrPoisoned) || errors.Is(err, ErrUncertain) {
			t.Fatal(err)
		}
		if err := l.Checkpoint(ctx0, 1, nil); !errors.Is(err, ErrPoisoned) {
			t.Fatal(err)
		}
	}
	if err := l.Close(); !errors.Is(err, ErrPoisoned) || s.fs.Ops() != ops {
		t.Fatalf("%v; %d operations after the poisoning", err, s.fs.Ops()-ops)
	}
	s.fs.Kill()
	l = s.open(Options{})
	if r := l.Report(); r.Rewritten == 0 || r.Head != 2 {
		t.Fatalf("%+v", r)
	}
	stats := s.fs.EachImage(simdisk.ImageOptions{Mode: simdisk.Both, Garbage: true}, func(img *simdisk.FS) bool {
		if got, err := contents((&sim{t: t, fs: img}).reader(ReaderOptions{}), 0); err != nil || len(got) != 2 {
			t.Fatal(got, err)
		}
		return true
	})
	if stats.Distinct != 1 {
		t.Fatalf("%d disks are possible after recovery", stats.Distinct)
	}
}

// C22, L18: a write that failed, in whole or in part, is the last one of this
// writer: what the file holds there is not known any more.
func TestC22_FailedWriteIsNotForgotten(t *testing.T) {
	for _, part := range []int{0, 60, 4000} {
		for _, completeOnly := range []bool{false, true} {
			s := newSim(t)
			l := s.create(small, Options{ZeroAhead: ZeroAheadOn})
			commit(t, l, []byte("one"))
			commit(t, l, []byte("the next writes its group alone"))
			s.fs.Inject(simdisk.Fault{Kind: simdisk.OpWrite, Part: part})
			b := batchOf(payload(7, 100), payload(8, 100))
			b.CompleteOnly = completeOnly
			if _, err := l.Commit(ctx0, b); !errors.Is(err, ErrUncertain) || !errors.Is(err, simdisk.ErrIO) || errors.Is(err, ErrNoSpace) {
				t.Fatal(part, err)
			}
			ops := s.fs.Ops()
			if _, err := l.Commit(ctx0, batchOf([]byte("three"))); !errors.Is(err, ErrPoisoned) || errors.Is(err, ErrUncertain) || s.fs.Ops() != ops {
				t.Fatalf("part %d, complete-only %v: %v, %d operations", part, completeOnly, err, s.fs.Ops()-ops)
			}
			if err := l.Close(); !errors.Is(err, ErrPoisoned) {
				t.Fatal(err)
			}
		}
	}
}

// C23, L12: the order of one commit, as the disk sees it.
func TestC23_WriteThenSyncThenAcknowledge(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, payload(0, 100)) // writes zeros ahead
	before := s.fs.Ops()
	for i := range 50 {
		b := batchOf(payload(i, 100))
		var order []string
		s.fs.Before(func(op simdisk.Op) {
			if !op.Inside {
				order = append(order, op.Kind.String())
			}
			if b.ticket.Done() {
				t.Errorf("acknowledged before %v", op)
			}
		})
		if _, err := l.Commit(ctx0, b); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(order) != "[write sync]" {
			t.Fatalf("commit %d: %v", i, order)
		}
	}
	s.fs.Before(nil)
	if n := s.fs.Ops() - before; n != 100 {
		t.Fatalf("%d operations for 50 commits", n)
	}
	if st := l.Stats(); st.Commits != 51 || st.Syncs != 51 || st.Writes != 51 {
		t.Fatalf("%+v", st)
	}
}

// L22: Close leaves nothing to do, and a slot that says so.
func TestL22_CloseNamesTheHead(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, payload(0, 100))
	complete(t, l, payload(1, 100))
	head := l.head
	closeLog(t, l)
	if got := s.fs.EachImage(simdisk.ImageOptions{}, func(*simdisk.FS) bool { return true }).Distinct; got != 1 {
		t.Fatalf("%d disks are possible after Close", got)
	}
	if h, err := s.reader(ReaderOptions{Durable: true}).Head(); err != nil || h.Revision != 2 || !h.Durable {
		t.Fatal(h, err)
	}
	l = s.open(Options{})
	if r := l.Report(); r.ProvenEnd != head.end || r.Rewritten != 0 || r.End != head.end {
		t.Fatalf("%+v", r)
	}
	closeLog(t, l)

	for _, kind := range []simdisk.Kind{simdisk.OpSync, simdisk.OpWrite} {
		for nth := 1; nth <= 2; nth++ {
			l := s.open(Options{})
			complete(t, l, payload(3, 10))
			s.fs.Inject(simdisk.Fault{Kind: kind, Nth: nth})
			err := l.Close()
			if injected := kind == simdisk.OpSync || nth == 1; injected && !errors.Is(err, simdisk.ErrIO) {
				t.Fatalf("%v %d failed, Close says %v", kind, nth, err)
			}
			s.fs = s.fs.Clone()
		}
	}
}

// L34: the clock decides nothing.
func TestL34_TheClockDecidesNothing(t *testing.T) {
	for _, clock := range []func() int64{
		func() int64 { return 0 }, func() int64 { return -1 << 63 }, func() int64 { return 1<<63 - 1 },
	} {
		s := newSim(t)
		env := s.env()
		env.Now = clock
		l, err := CreateIn(env, logName, small, Options{})
		if err != nil {
			t.Fatal(err)
		}
		commit(t, l, []byte("1"))
		s.fs.Kill()
		l = s.open(Options{})
		if got, err := contents(l.Reader, 0); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
	}
	var digests []cursor.Digest
	for i := range 2 {
		s := newSim(t)
		s.now.Store(int64(i) * 1e18)
		l := s.create(small, Options{})
		digests = append(digests, commit(t, l, []byte("same")).Digest)
	}
	if digests[0] != digests[1] {
		t.Fatal("the time of a commit is part of its digest")
	}
}
