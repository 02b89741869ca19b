package report

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/device"
	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

var w1 = Case{Workload: "W1", Variant: "256 B", FileSystem: "native"}

func document() *Document {
	d := &Document{Schema: Schema, Peers: []Peer{
		{Name: "raw prewritten", Kind: bench.Floor},
		{Name: "slow", Kind: bench.Rival, Traits: bench.Traits{Sums: bench.SumsVerified}},
		{Name: "fast", Kind: bench.Rival, Traits: bench.Traits{Sums: bench.SumsNone}},
		{Name: bench.TidemarkName, Kind: bench.Subject},
	}}
	d.Add(w1, "raw prewritten", Rate, []float64{100, 200, 300})
	d.Add(w1, "slow", Rate, []float64{10, 20, 30})
	d.Add(w1, "fast", Rate, []float64{50, 100, 150})
	d.Add(w1, bench.TidemarkName, Rate, []float64{90, 180, 270})
	return d
}

func TestDocument_Compare(t *testing.T) {
	d := document()
	d.Compare()
	if len(d.Ratios) != 3 {
		t.Fatalf("%d ratios, want one for every peer but the floor", len(d.Ratios))
	}
	for _, r := range d.Ratios {
		if r.Peer == bench.TidemarkName && r.Estimate != (stat.Estimate{Median: 0.9, Low: 0.9, High: 0.9}) {
			t.Errorf("ratio %v, want 0.9 in every round", r.Estimate)
		}
	}
}

func TestDocument_RoundTrip(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results", "latest.json")
	if err := document().Write(name); err != nil {
		t.Fatal(err)
	}
	d, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if f := d.Find(w1, "fast", Rate); f == nil || f.Median != 100 || f.Unit != "commits/s" || len(f.Rounds) != 3 {
		t.Errorf("read back %+v", f)
	}
	d.Schema++
	if err := d.Write(name); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(name); err == nil {
		t.Error("another schema: no error")
	}
}

func TestSixFigures(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 123456.7: 123457, -0.00123456789: -0.00123457, 5: 5, 1e9 / 3: 333333000} {
		if got := sixFigures(v); math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("sixFigures(%v) = %v, want %v", v, got, want)
		}
	}
}

func TestDocument_Merge(t *testing.T) {
	d := document()
	d.Skip(w1, "gone", "old reason")
	newer := &Document{
		Schema: Schema, Note: "second", Peers: d.Peers,
		FileSystems: []device.FileSystem{{Name: "native"}},
	}
	newer.Add(w1, "fast", Rate, []float64{400})
	d.Merge(newer)
	if f := d.Find(w1, "fast", Rate); f.Median != 400 {
		t.Errorf("median %v, want the newer one", f.Median)
	}
	if d.Find(w1, "slow", Rate) == nil {
		t.Error("a figure that was not measured again is gone")
	}
	if len(d.Skipped) != 0 || d.Note != "second" || len(d.FileSystems) != 1 {
		t.Errorf("skipped %v, note %q, file systems %v", d.Skipped, d.Note, d.FileSystems)
	}
}

func TestVerdict(t *testing.T) {
	least, most := bar{least: true, limit: 1}, bar{limit: 1}
	for _, c := range []struct {
		b    bar
		got  stat.Estimate
		want Verdict
	}{
		{least, stat.Estimate{Low: 1.1, Median: 1.2, High: 1.3}, Met},
		{least, stat.Estimate{Low: 0.9, Median: 1, High: 1.1}, Met},
		{least, stat.Estimate{Low: 0.8, Median: 0.9, High: 1}, Close},
		{least, stat.Estimate{Low: 0.7, Median: 0.8, High: 0.9}, Missed},
		{most, stat.Estimate{Low: 0.7, Median: 0.8, High: 0.9}, Met},
		{most, stat.Estimate{Low: 1, Median: 1.1, High: 1.2}, Close},
		{most, stat.Estimate{Low: 1.1, Median: 1.2, High: 1.3}, Missed},
	} {
		if got := verdict(c.b, c.got); got != c.want {
			t.Errorf("least %v, %+v: %s, want %s", c.b.least, c.got, got, c.want)
		}
	}
}

func TestJudge_Bases(t *testing.T) {
	d := document()
	for _, c := range []struct {
		b       base
		median  float64
		against string
	}{
		{base{}, 180, ""},
		{floorOf("raw prewritten"), 0.9, "raw prewritten"},
		{bestRival, 1.8, "best rival (fast)"},
		{bestSummed, 9, "best rival that checks sums (slow)"},
	} {
		b := atLeast(0, at("W1", "256 B", Rate), c.b)
		b.FileSystem, b.peer = "native", bench.TidemarkName
		j := d.judge(b)
		if j.Got.Median != c.median || j.Base != c.against {
			t.Errorf("%q: %v against %q, want %v against %q", c.b.what, j.Got.Median, j.Base, c.median, c.against)
		}
	}
}

func TestJudge_Unmeasured(t *testing.T) {
	d := document()
	d.Skip(Case{FileSystem: "ext4"}, "", "no loop devices")
	b := on("ext4", atLeast(1.7, at("W4", "16 × 256 B", Rate), bestRival))
	b.peer = bench.TidemarkName
	if j := d.judge(b); j.Verdict != Unmeasured || j.Reason != "no loop devices" {
		t.Errorf("got %s, %q", j.Verdict, j.Reason)
	}
	b.FileSystem = "xfs"
	if j := d.judge(b); j.Reason != NotRun {
		t.Errorf("reason %q, want %q", j.Reason, NotRun)
	}
}

// A bar that names a peer or metric nobody has would never be judged.
func TestBars_NameWhatExists(t *testing.T) {
	names := map[string]bool{"": true}
	for _, p := range bench.Peers() {
		names[p.Name] = true
	}
	for _, b := range bars() {
		if !names[b.peer] || !names[b.base.peer] {
			t.Errorf("%s %s: no peer %q or %q", b.Workload, b.Variant, b.peer, b.base.peer)
		}
		if units[b.metric] == "" {
			t.Errorf("%s %s: no metric %q", b.Workload, b.Variant, b.metric)
		}
	}
	for workload, name := range floors {
		if !names[name] {
			t.Errorf("%s: no floor %q", workload, name)
		}
	}
}
