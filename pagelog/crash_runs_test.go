package pagelog

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// newCrash returns the harness for one workload with the bounds of every day:
// all disks up to 2^8 of a crash point, all up to 2^5 of one in its recovery.
func newCrash(workload string) *crash {
	return &crash{
		workload: workload, create: small, nest: 16,
		seen: &hashSet{}, disks: &hashSet{},
		depths: []simdisk.ImageOptions{
			{Mode: simdisk.Both, MaxBits: 8, Samples: 40, Garbage: true},
			{Mode: simdisk.Strict, MaxBits: 5, Samples: 8, Garbage: true},
		},
	}
}

// gate makes the harness as thorough as a release wants it: all disks up to
// 2^10 of a crash point, crashes in the recovery of one in fifty, and in the
// recovery after that of one in fifty of those.
//
// CRASH_BITS is how many sectors in flight are tried in every subset.
func (c *crash) gate() {
	bits, err := strconv.Atoi(os.Getenv("CRASH_BITS"))
	if err != nil {
		bits = 10
	}
	c.nest = 50
	c.depths = []simdisk.ImageOptions{
		{Mode: simdisk.Both, MaxBits: bits, Samples: 200, Garbage: true},
		{Mode: simdisk.Strict, MaxBits: 6, Samples: 20, Garbage: true},
		{Mode: simdisk.Strict, MaxBits: 3, Samples: 4, Garbage: true},
	}
}

// crashPool is what many workloads share: the disks that were looked at.
type crashPool struct {
	seen, disks hashSet
	deadline    time.Time // zero: none
	mu          sync.Mutex
	total       crashStats
	failed      error
}

// crashAll runs workloads side by side and logs what it saw.
func crashAll(t *testing.T, workloads []string, setup func(*crash)) {
	t.Helper()
	var p crashPool
	began := time.Now()
	p.run(t, workloads, setup)
	t.Logf("%v, %.0f/s", &p, float64(p.seen.len())/time.Since(began).Seconds())
}

// String says what was done.
func (p *crashPool) String() string {
	return fmt.Sprintf("%d workloads, %d crash points, %d disks, %d distinct, %d looked at",
		p.total.workloads, p.total.points, p.total.images, p.disks.len(), p.seen.len())
}

// over reports whether enough was seen.
func (p *crashPool) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed != nil || !p.deadline.IsZero() && time.Now().After(p.deadline)
}

func (p *crashPool) took(stats crashStats, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = p.total.add(stats)
	if p.failed == nil {
		p.failed = err
	}
}

func (p *crashPool) run(t *testing.T, workloads []string, setup func(*crash)) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // every open allocates a few buffers, and little lives
	next := make(chan string)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for w := range next {
				c := newCrash(w)
				setup(c)
				c.seen, c.disks = &p.seen, &p.disks
				if !p.deadline.IsZero() {
					c.over = p.over
				}
				err := c.run()
				p.took(c.stats, err)
			}
		})
	}
	for _, w := range workloads {
		if p.over() {
			break
		}
		next <- w
	}
	close(next)
	wg.Wait()
	if p.failed != nil {
		t.Fatal(p.failed)
	}
}

// steps are what workloads are made of: each changes the log in one way, and
// leaves it open if it can. Sizes lie around the edges of sectors and pages: a
// record of n bytes takes 104+n, and the first group begins 32 bytes behind a
// sector's and a page's edge.
var steps = []string{
	"c1", "c376", "c368", "c3960", "c3952", "c5000+3", "b10/500/20", "m100/8/300", "k100", "sync", "blob",
	"y2", "y1 blob z3",
	"close open", "kill open", "cut1 open", "cut2 open", "cut3 open", "&k60 c20",
	"full c900 c1 room c7", "!sync c50 c1", "!write:100 c700", "!write2:60 c60", "!sync2 c30 close",
	"kill !trunc open", "kill !dir open", "kill !sync open", "kill !write open", "!write2:200 c10 close",
}

// sequences returns all lines of n steps.
func sequences(n int) []string {
	lines := []string{""}
	for range n {
		var longer []string
		for _, line := range lines {
			for _, s := range steps {
				longer = append(longer, strings.TrimSpace(line+" "+s))
			}
		}
		lines = longer
	}
	return lines
}

// sample keeps a seeded share of lines.
func sample(lines []string, seed uint64, share float64) []string {
	d := dice{state: seed}
	var kept []string
	for _, line := range lines {
		if float64(d.next()>>11)/(1<<53) < share {
			kept = append(kept, line)
		}
	}
	return kept
}

type variant struct {
	name  string
	setup func(*crash)
}

// fitting drops the lines that a variant has no oracle for: where commits are
// rejected one by one, several in one write could be any subset.
func (v *variant) fitting(lines []string) []string {
	var c crash
	if v.setup(&c); !c.faults {
		return lines
	}
	return slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "/") })
}

// variants are the ways in which a log is written.
var variants = []variant{
	{"zeros ahead", func(*crash) {}},
	{"no zeros ahead", func(c *crash) { c.opts.ZeroAhead = ZeroAheadOff }},
	{"checkpoints", func(c *crash) { c.opts.ZeroAhead, c.opts.CheckpointEvery = ZeroAheadOff, 200 }},
	{"aligned to sectors", func(c *crash) { c.opts.ZeroAhead, c.create.Align = ZeroAheadOff, 512 }},
	{"aligned to blocks", func(c *crash) { c.opts.ZeroAhead, c.create.Align = ZeroAheadOff, 4096 }},
	{"bounded backlog", func(c *crash) { c.opts.ZeroAhead, c.opts.MaxUnsynced = ZeroAheadOff, 300 }},
	{"after a base", func(c *crash) {
		c.opts.ZeroAhead, c.opts.CheckpointEvery, c.create.Base = ZeroAheadOff, 200, baseAt(41)
	}},
	{"maximum size", func(c *crash) { c.create.MaxSize = 17408; c.faults = true }},
}

// TestCrash_Pairs is L14, L15, L18, L22 to L26, L29, L31, L33 and L44 for every
// pair of steps, in every way of writing; a seeded half of the pairs where that
// makes many disks.
func TestCrash_Pairs(t *testing.T) {
	for i, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			share := 0.1 // of the many disks of zeros and blocks
			switch {
			case raceEnabled:
				share = 0.003
			case testing.Short():
				share = 0.02
			case i == 1 || i == 2:
				share = 1
			case i == 3 || i > 4:
				share = 0.3
			}
			crashAll(t, sample(v.fitting(sequences(2)), uint64(i), share), v.setup)
		})
	}
}

// TestCrash_Gate goes on for as many minutes as CRASH_MINUTES says: all
// workloads of up to two steps in every way of writing; then all of three and a
// seeded share of those of four, each in one way of writing, and over again in
// the next; with crashes in the recovery of recoveries.
func TestCrash_Gate(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv("CRASH_MINUTES"), 64)
	if err != nil {
		t.Skip("set CRASH_MINUTES to run it")
	}
	began := time.Now()
	p := &crashPool{deadline: began.Add(time.Duration(minutes * float64(time.Minute)))}
	run := func(v *variant, lines []string) {
		p.run(t, v.fitting(lines), func(c *crash) { v.setup(c); c.gate() })
	}
	short := append(sequences(1), sequences(2)...)
	for i := range variants {
		run(&variants[i], slices.Clone(short))
	}
	long := append(sequences(3), sample(sequences(4), 1, 0.05)...)
	done := 0
	const part = 1600
	for pass := 0; pass < len(variants) && !p.over(); pass++ {
		for at := 0; at < len(long) && !p.over(); at += part {
			for i := range variants {
				var lines []string
				for n := at; n < min(at+part, len(long)); n++ {
					if (n+pass)%len(variants) == i {
						lines = append(lines, long[n])
					}
				}
				run(&variants[i], lines)
			}
			if !p.over() {
				done += min(part, len(long)-at)
			}
		}
	}
	t.Logf("%v, %.0f/s; all %d lines of up to two steps in %d ways of writing, %.2f times all %d longer ones",
		p, float64(p.seen.len())/time.Since(began).Seconds(), len(short), len(variants), float64(done)/float64(len(long)), len(long))
}

// TestL23_StoriesOfManyCrashes is a few long lives: crash after crash, each on
// a disk that the last one left.
func TestL23_StoriesOfManyCrashes(t *testing.T) {
	slowRace(t)
	crashAll(t, []string{
		"c100 cut1 open c100 cut2 open c100 cut3 open c100 cut4 open c100 close open c1",
		"k100 k3960 cut5 open k7 k8 cut6 open sync c9 cut7 open blob cut8 open c1",
		"b100/3960/20 cut9 open b100/3960/20 cut10 open b100/3960/20 cut11 open b1/2/3",
		"c9000 c9000 cut1 open c9000 cut2 open c3 kill open c5 close",
		"!sync c100 kill open c100 !sync c100 kill open cut3 open c100",
		"!sync c100 cut1 open !sync c90 cut2 open !sync c80 cut3 open c1 close",
		"full c500 c500 room c500 full c500 close open c5 room c500 close open",
		"&k300 c100 &k10 sync &k20 sync cut12 open &k7 c8 cut13 open",
	}, func(c *crash) { c.opts.ZeroAhead, c.opts.CheckpointEvery = ZeroAheadOff, 600 })
}

func slowRace(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine, and slow under the race detector")
	}
}

// TestCrash_IndexRuns_D9 is lives in which runs of the index are written, put
// together and built anew, with the power gone in every one of those steps and
// in the recovery from that; nine checkpoints fill the youngest level.
func TestCrash_IndexRuns_D9(t *testing.T) {
	slowRace(t)
	every := func(n int64) func(*crash) {
		return func(c *crash) { c.opts.ZeroAhead, c.opts.CheckpointEvery = ZeroAheadOff, n }
	}
	lines := []string{
		"y2 blob y2 blob z1 blob y1 blob y1 blob y1 blob y1 blob y1 blob y1 blob z2 cut1 open y1 close open",
		"y3 reindex z2 y1 cut2 open blob reindex cut3 open y1 reindex kill open c9",
		"y40 blob y40 reindex y2 close open y1 cut4 open y1 blob !sync blob kill open y1",
		"y2 full blob reindex y1 room reindex blob y1 !write:60 blob kill open reindex !sync2 reindex kill open y1",
		"b100/8 y2 blob c5000 reindex k30 z2 cut5 open !write2 reindex kill open z1 sync close",
	}
	if testing.Short() {
		lines = lines[:2]
	}
	for _, n := range []int64{0, 300} {
		crashAll(t, lines, every(n))
	}
}

// TestL33_RecoveryNeedsNoSpace opens, reads and closes a log with no byte of
// space left on the disk.
func TestL33_RecoveryNeedsNoSpace(t *testing.T) {
	crashAll(t, []string{
		"c100 k200 full kill open close open kill open c900 room c900",
		"m100/8/300 full close open kill open blob room blob",
		"c100 full !sync c5 kill open close open room c7",
	}, func(c *crash) { c.opts.ZeroAhead = ZeroAheadOff })
}
