package pagelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// simSpot is a name in a simulated directory. What is random there is the same
// in every run.
func simSpot(s *simdisk.FS, name string) spot {
	env := Env{Dir: s.Dir(), Random: rand.NewChaCha8([32]byte{1}), Now: func() int64 { return 9 }, Idle: -1}
	return spot{env.withDefaults(), name, name}
}

// commitsOf lists the groups of a log in memory that hold, as one line each.
func commitsOf(t testing.TB, b []byte, derived bool) []string {
	t.Helper()
	var list []string
	visit := func(p *passed, _ bool) error {
		if p.Derived() && !derived {
			return nil
		}
		var line strings.Builder
		line.WriteString(fmt.Sprintf("%v %d %x %d %d", p.Derived(), p.Revision, p.Digest, p.Epoch, p.Time))
		for r := range frame.Records(p.body) {
			line.WriteString(fmt.Sprintf(" %d/%d/%d/%x", r.Kind, r.Flags, r.Raw, r.Data))
		}
		list = append(list, line.String())
		return nil
	}
	if _, err := verifyFile(context.Background(), &memFile{b: b}, VerifyOptions{}, plan{workers: 1, stretch: 4096, visit: visit}); err != nil {
		t.Fatal(err)
	}
	return list
}

// runSalvage salvages b and returns the report and the new log.
func runSalvage(t testing.TB, b []byte, o SalvageOptions) (SalvageReport, []byte) {
	t.Helper()
	s := simdisk.New()
	s.WriteFile("old", b)
	report, err := salvage(context.Background(), simSpot(s, "old"), simSpot(s, "new"), o)
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := s.ReadFile("old"); !bytes.Equal(now, b) {
		t.Error("the source was touched")
	}
	made, err := s.ReadFile("new")
	if err != nil {
		t.Fatal(err)
	}
	if r := check(t, made, 1); len(r.Findings) != 0 || r.Head != report.Head || r.LogID != report.LogID || r.LogID == report.Source.LogID {
		t.Errorf("the new log: %s\n%+v", r.describe(), report)
	}
	return report, made
}

// TestSalvage_L52_SoundLogIsKept: without damage everything is kept, derived
// groups and checkpoints too, at the same offsets.
func TestSalvage_L52_SoundLogIsKept(t *testing.T) {
	for name, c := range shapes() {
		b := c.bytes(500)
		report, made := runSalvage(t, b, SalvageOptions{})
		want, got := commitsOf(t, b, true), commitsOf(t, made, true)
		if !reflect.DeepEqual(got, want) || report.Saved != 0 || report.Kept != c.at.rev {
			t.Errorf("%s: %+v", name, report)
		}
		h, err := readHeader(&memFile{b: made})
		if err != nil {
			t.Fatal(err)
		}
		newest := (&header{geo: c.geo, slots: [2]slotRead{{Slot: c.slots[0]}, {Slot: c.slots[1]}}}).newest()
		if s := h.newest(); s.Check != newest.Check || s.Before != newest.Before || s.Durable != c.at.place() {
			t.Errorf("%s: slot %+v", name, s)
		}
	}
}

// TestSalvage_L52_BehindAGap: the prefix is kept as it was, and what holds
// behind a gap is found again, record by record, in opaque records.
func TestSalvage_L52_BehindAGap(t *testing.T) {
	c := long(120)
	whole := commitsOf(t, c.bytes(0), false)
	var data []craftedGroup
	for _, g := range c.groups {
		if !g.Derived() {
			data = append(data, g)
		}
	}
	b := c.bytes(0)
	for _, rev := range []int{41, 70} {
		b[data[rev-1].start+frame.GroupHeaderSize+9] ^= 1
	}
	report, made := runSalvage(t, b, SalvageOptions{})
	if report.Kept != 40 || report.Saved != c.at.rev-42 || report.Head != c.at.rev-2 {
		t.Fatalf("%+v", report)
	}
	want := []Moved{{1, 40, 1, 40, false}, {42, 69, 41, 68, true}, {71, c.at.rev, 69, c.at.rev - 2, true}}
	if !reflect.DeepEqual(report.Map, want) {
		t.Errorf("map %+v, want %+v", report.Map, want)
	}
	got := commitsOf(t, made, false)
	if !reflect.DeepEqual(got[:40], whole[:40]) {
		t.Error("the prefix is not as it was")
	}
	checkSalvaged(t, made, report, data, c.id.LogID, whole)
}

// checkSalvaged holds the opaque commits of a new log against the old ones.
func checkSalvaged(t *testing.T, made []byte, report SalvageReport, data []craftedGroup, id cursor.LogID, whole []string) {
	t.Helper()
	old := map[uint64]uint64{}
	for _, m := range report.Map {
		for i := range m.NewLast - m.NewFirst + 1 {
			old[m.NewFirst+i] = m.OldFirst + i
		}
	}
	visit := func(p *passed, _ bool) error {
		if p.Revision <= report.Kept || p.Derived() {
			return nil
		}
		g := data[old[p.Revision]-1]
		var line strings.Builder
		line.WriteString(fmt.Sprintf("false %d %x %d %d", g.Revision, g.Digest, g.Epoch, g.Time))
		index := uint32(0)
		for r := range frame.Records(p.body) {
			s, err := DecodeSalvaged(r.Data)
			if err != nil || r.Kind != frame.KindSalvaged || s.Index != index || s.Log != id ||
				s.Revision != g.Revision || s.Digest != cursor.Digest(g.Digest) {
				t.Errorf("revision %d: %+v %v", p.Revision, s, err)
			}
			was, err := s.Record()
			if err != nil {
				t.Error(err)
			}
			line.WriteString(fmt.Sprintf(" %d/%d/%d/%x", was.Kind, was.Flags, was.Raw, was.Data))
			index++
		}
		if line.String() != whole[g.Revision-1] {
			t.Errorf("revision %d is not what it was", g.Revision)
		}
		return nil
	}
	if _, err := verifyFile(context.Background(), &memFile{b: made}, VerifyOptions{}, plan{workers: 1, stretch: 4096, visit: visit}); err != nil {
		t.Fatal(err)
	}
}

func TestSalvage_L52_PrefixStopsAtTheFirstDamage(t *testing.T) {
	c := long(120)
	b := c.bytes(0)
	b[c.groups[49].start+8] ^= 1
	var last, total int64
	report, made := runSalvage(t, b, SalvageOptions{Prefix: true, Progress: func(d, n int64) {
		if d < last {
			t.Errorf("progress fell from %d to %d", last, d)
		}
		last, total = d, n
	}})
	if report.Saved != 0 || report.Head != report.Source.Head || report.Head != report.Kept || last != total || total == 0 {
		t.Errorf("%+v, progress %d of %d", report, last, total)
	}
	if got := commitsOf(t, made, true); len(got) != 49 {
		t.Errorf("%d groups kept, want 49", len(got))
	}
}

// TestSalvage_L52_BridgedDamage: lost derived bytes cost the derived groups
// behind them, no commit.
func TestSalvage_L52_BridgedDamage(t *testing.T) {
	c := long(120)
	b := c.bytes(0)
	b[c.groups[16].start+100] ^= 1
	report, made := runSalvage(t, b, SalvageOptions{})
	if !reflect.DeepEqual(commitsOf(t, made, false), commitsOf(t, c.bytes(0), false)) || report.Saved != 0 {
		t.Errorf("%+v", report)
	}
}

// TestSalvage_L52_RandomDamage: whatever is damaged, the new log is sound, and
// each commit the report maps is what it was.
func TestSalvage_L52_RandomDamage(t *testing.T) {
	c := long(150)
	whole := commitsOf(t, c.bytes(0), false)
	var data []craftedGroup
	for _, g := range c.groups {
		if !g.Derived() {
			data = append(data, g)
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		b := c.bytes(0)
		for range 1 + rng.IntN(4) {
			off := 16384 + rng.IntN(len(b)-16384)
			if rng.IntN(3) == 0 {
				clear(b[off:min(off+rng.IntN(5000), len(b))])
			} else {
				b[off] ^= 1 << rng.IntN(8)
			}
		}
		report, made := runSalvage(t, b, SalvageOptions{})
		if got := commitsOf(t, made, false); !reflect.DeepEqual(got[:report.Kept], whole[:report.Kept]) {
			t.Fatalf("prefix of %d is not as it was", report.Kept)
		}
		checkSalvaged(t, made, report, data, c.id.LogID, whole)
	}
}

// TestSalvage_L52_TornEndIsNotSaved: what an unacknowledged write left is not
// history, whole groups behind its wrong page header included.
func TestSalvage_L52_TornEndIsNotSaved(t *testing.T) {
	c := shapes()["unsynced"]
	b := c.bytes(0)
	b[c.geo.PageStart(c.at.end)+9] ^= 1
	report, _ := runSalvage(t, b, SalvageOptions{})
	if !report.Source.Torn || report.Saved != 0 || report.Head != 6 {
		t.Errorf("%+v", report)
	}
}

// TestSalvage_L52_OpensForWriting: the new log is a log like any other.
func TestSalvage_L52_OpensForWriting(t *testing.T) {
	c := long(60)
	b := c.bytes(0)
	b[c.groups[30].start+8] ^= 1
	_, made := runSalvage(t, b, SalvageOptions{})
	s := simdisk.New()
	s.WriteFile("new", made)
	l, err := OpenIn(simSpot(s, "new").env, "new", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var batch Batch
	batch.Append([]byte("on we go"))
	if _, err := l.Commit(context.Background(), &batch); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSalvage_L52_KeepsStoredBytes: compressed records are not compressed anew,
// neither in the prefix nor behind a gap.
func TestSalvage_L52_KeepsStoredBytes(t *testing.T) {
	c := craft(4096, 8)
	text := []byte(strings.Repeat("the sea leaves a line ", 50))
	pack := func() {
		body := frame.AppendRecord(nil, 7, frame.FlagRequired, frame.Zstd, text)
		body = frame.AppendRecord(body, 8, 0, frame.S2, text)
		c.append(0, body, 2)
		c.sync()
	}
	pack()
	c.commit(5)
	pack()
	c.name()
	b := c.bytes(0)
	b[c.groups[1].start+frame.GroupHeaderSize+24] ^= 1
	report, made := runSalvage(t, b, SalvageOptions{})
	whole := commitsOf(t, c.bytes(0), false)
	if got := commitsOf(t, made, false); got[0] != whole[0] {
		t.Error("the prefix is not as it was")
	}
	checkSalvaged(t, made, report, c.groups, c.id.LogID, whole)
}

// TestSalvage_L52_Pieces: a record that its header makes too large for the
// limits is cut, and a commit that does not fit becomes several.
func TestSalvage_L52_Pieces(t *testing.T) {
	c := craft(4096, 8)
	c.commit(1000, 0, 300)
	var body []byte
	for r := range frame.Records(c.b[c.groups[0].start+frame.GroupHeaderSize : c.at.end]) {
		body = frame.AppendStored(body, r)
	}
	fsys := simdisk.New()
	out, err := fsys.Dir().Create("new")
	if err != nil {
		t.Fatal(err)
	}
	s := salvager{head: &header{id: c.id, geo: c.geo}, id: c.id, geo: c.geo, build: frame.NewBuilder(c.geo), at: point{end: 16384}}
	s.id.MaxRecord, s.id.MaxGroup = 256, 600
	s.out.f = out
	p := passed{GroupHeader: c.groups[0].GroupHeader, body: body}
	if err := errors.Join(s.save(&p), s.out.flush()); err != nil {
		t.Fatal(err)
	}
	if s.at.rev < 3 || len(s.report.Map) != 1 || s.report.Map[0] != (Moved{1, 1, 1, s.at.rev, true}) {
		t.Errorf("%d commits, %+v", s.at.rev, s.report.Map)
	}
	got := map[uint32][]byte{}
	w := walker{geo: c.geo, win: window{r: out, limit: s.at.end, chunk: 4096}, at: point{end: 16384}}
	for w.at.end < s.at.end {
		if err := w.next(); err != nil {
			t.Fatal(err)
		}
		for r := range frame.Records(w.cur.body) {
			one, err := DecodeSalvaged(r.Data)
			if err != nil || len(r.Data) > 256 || int(one.At) != len(got[one.Index]) {
				t.Fatal(one, err)
			}
			got[one.Index] = append(got[one.Index], one.Stored...)
			if _, err := one.Record(); (err == nil) != (len(one.Stored) == int(one.Length)) {
				t.Error(one, err)
			}
		}
	}
	index := uint32(0)
	for r := range frame.Records(body) {
		if !bytes.Equal(got[index], r.Data) {
			t.Errorf("record %d: %d bytes, want %d", index, len(got[index]), len(r.Data))
		}
		index++
	}
}

func TestSalvage_RefusesWhatIsThere(t *testing.T) {
	s := simdisk.New()
	b := craft(4096, 8).bytes(0)
	s.WriteFile("old", b)
	s.WriteFile("new", []byte("mine"))
	_, err := salvage(context.Background(), simSpot(s, "old"), simSpot(s, "new"), SalvageOptions{})
	_, same := salvage(context.Background(), simSpot(s, "old"), simSpot(s, "old"), SalvageOptions{})
	if mine, _ := s.ReadFile("new"); !errors.Is(err, fs.ErrExist) || !errors.Is(same, fs.ErrExist) || string(mine) != "mine" {
		t.Error(err, same, mine)
	}
	s.WriteFile("zero", make([]byte, 30000))
	if _, err := salvage(context.Background(), simSpot(s, "zero"), simSpot(s, "n2"), SalvageOptions{}); !errors.Is(err, ErrNotALog) {
		t.Error(err)
	}
}

func TestSalvage_NoSpaceLeavesNothing(t *testing.T) {
	s := simdisk.New()
	s.Capacity = 60 << 10
	s.WriteFile("old", long(60).bytes(0))
	_, err := salvage(context.Background(), simSpot(s, "old"), simSpot(s, "new"), SalvageOptions{})
	names, _ := s.Dir().Names()
	if !errors.Is(err, ErrNoSpace) || len(names) != 1 {
		t.Error(err, names)
	}
}

// TestSalvage_L52_CrashLeavesAWholeLogOrNone cuts the power at every operation
// of a salvage: the name is free or leads to the whole new log, the old one is
// as it was, and running it again works.
func TestSalvage_L52_CrashLeavesAWholeLogOrNone(t *testing.T) {
	c := craft(4096, 8)
	for range 20 {
		c.commit(150)
		c.sync()
	}
	c.name()
	b := c.bytes(0)
	b[c.groups[9].start+8] ^= 1
	wholeOrNone(t, b, 19, func(s *simdisk.FS) error {
		_, err := salvage(context.Background(), simSpot(s, "old"), simSpot(s, "new"), SalvageOptions{})
		return err
	})
}

// wholeOrNone runs do, which makes "new" of "old", and looks at every disk that
// a power cut in it may leave.
func wholeOrNone(t *testing.T, old []byte, head uint64, do func(s *simdisk.FS) error) {
	t.Helper()
	s := simdisk.New()
	s.WriteFile("old", old)
	wholes, nones := 0, 0
	look := func(img *simdisk.FS) bool {
		if was, err := img.ReadFile("old"); err != nil || !bytes.Equal(was, old) {
			t.Errorf("the source changed: %v\n%s", err, img.Log())
		}
		made, err := img.ReadFile("new")
		if err != nil {
			nones++
			if nones%50 == 1 { // what was left behind is in nobody's way
				if err := do(img); err != nil {
					t.Errorf("again: %v\n%s", err, img.Log())
				}
				if names, _ := img.Dir().Names(); len(names) != 2 {
					t.Errorf("left behind: %v", names)
				}
			}
			return !t.Failed()
		}
		wholes++
		if r := check(t, made, 1); len(r.Findings) != 0 || r.Head != head {
			t.Errorf("%s\n%s", r.describe(), img.Log())
		}
		return !t.Failed()
	}
	s.Before(func(simdisk.Op) {
		s.EachImage(simdisk.ImageOptions{Mode: simdisk.Both, MaxBits: 8, Samples: 60, Garbage: true}, look)
	})
	if err := do(s); err != nil {
		t.Fatal(err)
	}
	s.Before(nil)
	s.EachImage(simdisk.ImageOptions{}, look)
	if nones == 0 || wholes == 0 {
		t.Errorf("%d disks without, %d with the new log", nones, wholes)
	}
}
