package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

// NotRun is the reason for a missing figure when nothing else says why.
const NotRun = "not run"

// Verdict is how a figure stands to its bar.
type Verdict string

// The verdicts. A bar is missed only if the whole interval is on the wrong
// side of it.
const (
	Met        Verdict = "met"
	Close      Verdict = "close" // the median misses, the interval does not
	Missed     Verdict = "missed"
	Unmeasured Verdict = "unmeasured"
)

// bar is one promise about speed.
type bar struct {
	Case
	peer   string // whose figure
	metric string
	base   base    // what it is divided by
	least  bool    // the limit is a lower one
	limit  float64 // in the metric's unit, or a ratio if there is a base
}

// base picks the figure a bar divides by. The zero base divides by nothing.
type base struct {
	peer    string                // a peer by name
	among   func(bench.Peer) bool // or the best of these rivals
	what    string                // says so in words
	variant string                // or the same peer's figure in another variant
}

var (
	floorOf    = func(name string) base { return base{peer: name, what: name} }
	bestRival  = base{among: func(bench.Peer) bool { return true }, what: "best rival"}
	bestSummed = base{
		among: func(p bench.Peer) bool { return p.Traits.Sums == bench.SumsVerified },
		what:  "best rival that checks sums",
	}
	bestVerifyingOpen = base{
		among: func(p bench.Peer) bool { return p.Traits.Sums != bench.SumsNone && p.Name != "SQLite" },
		what:  "best rival that verifies its log",
	}
)

// Limits that stand for an exact number: what the measurement itself adds is
// allowed for.
const (
	oneFlush  = 1.005 // a background flush in 200 commits
	noAllocs  = 0.01  // per record: what a round allocates once
	sameOpen  = 1.25  // opening does not depend on the size
	kibibytes = 1 << 10
)

// bars returns the bars of the project. Ratios are at the same durability in
// the same rounds.
func bars() []bar {
	all := slices.Concat(commitBars(), bulkBars(), deviceBars(), openBars())
	for i := range all {
		all[i].FileSystem = cmp.Or(all[i].FileSystem, "native")
		all[i].peer = cmp.Or(all[i].peer, bench.TidemarkName)
	}
	return all
}

// at names a figure, to be completed by on and of.
func at(workload, variant, metric string) bar {
	return bar{Case: Case{Workload: workload, Variant: variant}, metric: metric}
}

func atLeast(limit float64, what bar, b base) bar {
	what.limit, what.base, what.least = limit, b, true
	return what
}

func atMost(limit float64, what bar, b base) bar {
	what.limit, what.base = limit, b
	return what
}

func on(fileSystem string, b bar) bar {
	b.FileSystem = fileSystem
	return b
}

func of(peer string, b bar) bar {
	b.peer = peer
	return b
}

func commitBars() []bar {
	prewritten, leader := floorOf("raw prewritten"), floorOf("raw leader")
	return []bar{
		atLeast(0.95, at("W1", "256 B", Rate), prewritten),
		atLeast(1, at("W1", "256 B", Rate), bestRival),
		atMost(1.25, at("W1", "256 B", P99), bestRival),
		atLeast(0.85, at("W2", "4 KiB", Rate), prewritten),
		atLeast(1.15, at("W2", "4 KiB", Rate), bestRival),
		atLeast(0.7, at("W2", "64 KiB", Rate), prewritten),
		atLeast(1.3, at("W2", "64 KiB", Rate), bestRival),
		atLeast(0.9, at("W3", "8 callers", Rate), leader),
		atLeast(0.9, at("W3", "64 callers", Rate), leader),
		atLeast(0.9, at("W3", "256 callers", Rate), leader),
		atLeast(1.15, at("W3", "64 callers", Rate), bestRival),
		atLeast(1, at("W3", "256 callers", Rate), bestRival),
		atLeast(0.9, at("W4", "16 × 256 B", Rate), prewritten),
		atLeast(1.15, at("W4", "16 × 256 B", Rate), bestRival),
		on("ext4", atLeast(1.7, at("W4", "16 × 256 B", Rate), bestRival)),
	}
}

func bulkBars() []bar {
	grow, prewritten := floorOf("raw grow"), floorOf("raw prewritten")
	all := []bar{
		atLeast(0.8, at("W5", "4 KiB", Throughput), grow),
		atLeast(0.8, at("W5", "64 KiB", Throughput), grow),
		atLeast(1.2, at("W5", "256 B", Throughput), bestSummed),
		atMost(1.5, at("W7", "4 KiB", ReadTime), floorOf("raw page read")),
		of(bench.TidemarkHintName, atMost(1.3, at("W7", "4 KiB", ReadTime), floorOf("raw page read"))),
		atMost(noAllocs, at("W7", "4 KiB", Allocs), base{}),
		atLeast(0.7, at("W12", "4 KiB", Throughput), prewritten),
	}
	for _, variant := range []string{"256 B", "4 KiB"} {
		all = append(all,
			atLeast(0.5, at("W6", variant, Throughput), prewritten),
			atLeast(1.5, at("W6", variant, Throughput), bestSummed),
			atMost(noAllocs, at("W6", variant, Allocs), base{}))
	}
	for _, rival := range []string{"pebble", "badger", "SQLite", "raft-wal", "tidwall/wal"} {
		all = append(all, atMost(1, at("W7", "4 KiB", ReadTime), floorOf(rival)))
	}
	return all
}

func deviceBars() []bar {
	prewritten := floorOf("raw prewritten")
	return []bar{
		atMost(oneFlush, at("W9", "256 B", Flushes), base{}),
		atMost(oneFlush, at("W9", "4 KiB", Flushes), base{}),
		atMost(1.25, at("W9", "256 B", Bytes), prewritten),
		atMost(3.1, at("W9", "4 KiB", Bytes), prewritten),
		of(bench.TidemarkGrowName, atMost(2.2, at("W9", "4 KiB", Bytes), prewritten)),
		on("ext4", atMost(oneFlush, at("W9", "256 B", Flushes), base{})),
		on("xfs", atMost(oneFlush, at("W9", "256 B", Flushes), base{})),
	}
}

func openBars() []bar {
	return []bar{
		atMost(5, at("W8", "2 GiB, killed", OpenTime), base{}),
		atMost(sameOpen, at("W8", "2 GiB, killed", OpenTime), base{variant: "64 MiB, killed", what: "at 64 MiB"}),
		atMost(1, at("W8", "2 GiB, killed", OpenTime), bestVerifyingOpen),
		atMost(200, at("W10", "complete commits", Delay), base{}),
		atMost(5000, at("W10", "complete commits", DelayP99), base{}),
		atMost(8*kibibytes, at("W11", "1000 logs", HeapBytes), base{}),
		atMost(2, at("W11", "1000 logs", Files), base{}), // the log and its directory
	}
}

// Judgement is a bar with what was measured.
type Judgement struct {
	Case
	Peer    string
	Metric  string
	Base    string // in words, with the rival that was best; empty: none
	Want    string // such as "≥ 0.95"
	Got     stat.Estimate
	Verdict Verdict
	Reason  string // why it was not measured
}

// Judge holds the document against every bar.
func (d *Document) Judge() []Judgement {
	var all []Judgement
	for _, b := range bars() {
		all = append(all, d.judge(b))
	}
	return all
}

func (d *Document) judge(b bar) Judgement {
	sign := "≤"
	if b.least {
		sign = "≥"
	}
	j := Judgement{
		Case: b.Case, Peer: b.peer, Metric: b.metric, Base: b.base.what,
		Want: fmt.Sprintf("%s %g", sign, b.limit), Verdict: Unmeasured,
	}
	figure := d.Find(b.Case, b.peer, b.metric)
	if figure == nil {
		j.Reason = d.reason(b.Case, b.peer)
		return j
	}
	j.Got = figure.Estimate
	if b.base.what != "" {
		divisor := d.divisor(b)
		if divisor == nil {
			j.Reason = d.reason(b.Case, b.base.peer)
			return j
		}
		if b.base.among != nil {
			j.Base = fmt.Sprintf("%s (%s)", b.base.what, divisor.Peer)
		}
		j.Got = stat.Ratio(figure.Rounds, divisor.Rounds)
	}
	j.Verdict = verdict(b, j.Got)
	return j
}

// divisor finds the figure a bar divides by.
func (d *Document) divisor(b bar) *Figure {
	switch {
	case b.base.variant != "":
		c := b.Case
		c.Variant = b.base.variant
		return d.Find(c, b.peer, b.metric)
	case b.base.among == nil:
		return d.Find(b.Case, b.base.peer, b.metric)
	}
	return d.Best(b.Case, b.metric, b.base.among)
}

// verdict looks at the side of the limit an interval is on.
func verdict(b bar, got stat.Estimate) Verdict {
	ok := func(v float64) bool { return v <= b.limit }
	if b.least {
		ok = func(v float64) bool { return v >= b.limit }
	}
	switch {
	case ok(got.Median):
		return Met
	case ok(got.Low) || ok(got.High):
		return Close
	}
	return Missed
}

// reason says why a case has no figure of a peer.
func (d *Document) reason(c Case, peer string) string {
	for _, s := range d.Skipped {
		if s.FileSystem == c.FileSystem && (s.Workload == "" || s.Workload == c.Workload) &&
			(s.Variant == "" || s.Variant == c.Variant) && (s.Peer == "" || s.Peer == peer) {
			return s.Reason
		}
	}
	return NotRun
}
