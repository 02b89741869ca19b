package simdisk

import (
	"math/rand/v2"
	"slices"
)

// Mode is how sizes and names relate to each other when the power goes.
type Mode int

// The two modes of rule 3, and both one after the other.
const (
	Strict  Mode = iota // any subset of the sizes and names in flight
	Journal             // a prefix of the metadata operations
	Both                // Strict, then Journal
)

// ImageOptions says which images to build. The zero value is strict, without
// garbage, with default limits.
type ImageOptions struct {
	Mode    Mode
	MaxBits int    // all images are built if there are at most 2^MaxBits; 0 means 12
	Samples int    // random images where there are more; 0 means 200, less than 0 none
	Seed    uint64 // of the random images and of garbage
	Garbage bool   // rule 5: unprotected sectors in flight may end as garbage

	// Protected reports whether the sector at this offset of the file holds
	// acknowledged bytes, so that it ends as one of its versions. Nil means
	// that none does. It is asked once per sector in flight, with the last
	// name the file had, and must not use the FS.
	Protected func(name string, off int64) bool
}

// ImageStats counts what EachImage did.
type ImageStats struct {
	Tried      int  // combinations of outcomes that were looked at
	Distinct   int  // images among them that differ, each visited once
	Exhaustive bool // Tried is all there are
}

// Add sums the counts up; the sum is exhaustive if every part is.
func (a ImageStats) Add(b ImageStats) ImageStats {
	return ImageStats{
		Tried:      a.Tried + b.Tried,
		Distinct:   a.Distinct + b.Distinct,
		Exhaustive: a.Exhaustive && b.Exhaustive,
	}
}

// EachImage calls visit with the disk images that a power cut at this moment
// may leave behind, each a file system of its own whose whole content is
// durable, until visit returns false. It builds all of them if there are at
// most 2^MaxBits. Otherwise it builds, in the order in which things were
// written, all prefixes, all with one thing missing, all with one thing only,
// all with one sector of garbage, and Samples random ones. Images that are
// equal are visited once.
//
// An image is valid until visit returns and its memory is used again for the
// next one; Clone makes one that stays. The handles opened in an image end with
// it. EachImage may be called by the hook of Before and, for an image, within
// visit. Operations on s meanwhile do not show in the images. It must not be
// called twice at a time for one FS.
func (s *FS) EachImage(opts ImageOptions, visit func(img *FS) bool) ImageStats {
	s.mu.Lock()
	if s.work == nil {
		s.work = newEnumerator()
	}
	e := s.work
	e.start(s, opts, visit)
	s.mu.Unlock()
	e.run()
	return e.stats
}

// RandomImage returns one of the images a power cut at this moment may leave
// behind, chosen by rng, to keep.
func (s *FS) RandomImage(opts ImageOptions, rng *rand.Rand) *FS {
	e := newEnumerator()
	s.mu.Lock()
	e.start(s, opts, nil)
	s.mu.Unlock()
	mode := opts.Mode
	if mode == Both {
		mode = Mode(rng.IntN(2))
	}
	if mode == Strict {
		e.allowAll()
	} else {
		e.allowUpTo(e.plan.cuts[rng.IntN(len(e.plan.cuts))])
	}
	e.choose(rng)
	e.build()
	return e.img
}

// enumerator walks over the choices of a plan. Its buffers are kept between
// calls.
type enumerator struct {
	plan  plan
	opts  ImageOptions
	visit func(*FS) bool
	stats ImageStats
	done  bool // visit wants no more

	allowed []int    // options that the present space leaves, cell after cell
	bounds  [][2]int // per cell: its stretch of allowed
	choice  []int    // per cell: the option
	digits  []int    // per cell: the position within its stretch

	seen map[uint64]struct{}
	sums []uint64 // scratch of hashOf
	img  *FS
}

func newEnumerator() *enumerator {
	return &enumerator{seen: map[uint64]struct{}{}, img: New()}
}

func (e *enumerator) start(s *FS, opts ImageOptions, visit func(*FS) bool) {
	if opts.MaxBits == 0 {
		opts.MaxBits = 12
	}
	if opts.Samples == 0 {
		opts.Samples = 200
	}
	e.opts, e.visit, e.done = opts, visit, false
	e.stats = ImageStats{Exhaustive: true}
	clear(e.seen)
	e.plan.make(s, opts)
	e.choice = slices.Grow(e.choice[:0], len(e.plan.cells))[:len(e.plan.cells)]
	e.digits = slices.Grow(e.digits[:0], len(e.plan.cells))[:len(e.plan.cells)]
	e.sums = slices.Grow(e.sums[:0], len(e.plan.nodes))[:len(e.plan.nodes)]
	e.img.Capacity, e.img.NoPunch, e.img.Where = s.Capacity, s.NoPunch, s.Where
}

func (e *enumerator) run() {
	if e.opts.Mode != Journal {
		e.allowAll()
		e.space()
	}
	if e.opts.Mode == Strict {
		return
	}
	for _, c := range e.plan.cuts {
		e.allowUpTo(c)
		e.space()
	}
}

// allowAll leaves every option of every cell open.
func (e *enumerator) allowAll() {
	e.allowed, e.bounds = e.allowed[:0], e.bounds[:0]
	for _, c := range e.plan.cells {
		from := len(e.allowed)
		for o := range c.to - c.from {
			e.allowed = append(e.allowed, o)
		}
		e.bounds = append(e.bounds, [2]int{from, len(e.allowed)})
	}
}

// allowUpTo leaves the options open that go with a journal whose last
// transaction on disk is operation seq. For a cell that means: the last
// metadata version up to seq has landed, no later one has, and the data
// versions in between may or may not have; those that a failed sync gave up
// are not bound to the journal.
func (e *enumerator) allowUpTo(seq uint64) {
	e.allowed, e.bounds = e.allowed[:0], e.bounds[:0]
	for i := range e.plan.cells {
		from := len(e.allowed)
		e.allowCell(&e.plan.cells[i], seq)
		e.bounds = append(e.bounds, [2]int{from, len(e.allowed)})
	}
}

func (e *enumerator) allowCell(c *cell, seq uint64) {
	vs := e.plan.versions[c.vFrom:c.vTo]
	first, lower := 0, 0 // the option that is certain, and where later versions begin
	for i, v := range vs {
		if v.isMeta && !v.isLost && v.seq <= seq {
			first, lower = v.option, i+1
		}
	}
	from := len(e.allowed)
	e.allowed = append(e.allowed, first)
	for _, v := range vs[lower:] {
		if v.isMeta && !v.isLost {
			break
		}
		e.allow(from, v.option)
	}
	for o := range c.to - c.from {
		if e.plan.options[c.from+o].isGarbage {
			e.allow(from, o)
		}
	}
}

// allow adds an option to the stretch that begins at from, once.
func (e *enumerator) allow(from, option int) {
	if !slices.Contains(e.allowed[from:], option) {
		e.allowed = append(e.allowed, option)
	}
}

// space visits the images of what is allowed: all of them, or the ones that
// find most.
func (e *enumerator) space() {
	if e.combinations() <= 1<<e.opts.MaxBits {
		e.all()
		return
	}
	e.stats.Exhaustive = false
	e.prefixes()
	e.oneMissing()
	e.oneOnly()
	e.oneGarbage()
	rng := rand.New(rand.NewPCG(e.opts.Seed, 0x7469646D61726B))
	for range e.opts.Samples {
		e.choose(rng)
		e.try()
	}
}

// combinations counts the images of what is allowed, up to 2^62.
func (e *enumerator) combinations() int64 {
	total := int64(1)
	for _, b := range e.bounds {
		if total *= int64(b[1] - b[0]); total > 1<<31 {
			return 1 << 62
		}
	}
	return total
}

// all counts through every combination.
func (e *enumerator) all() {
	e.oldest()
	clear(e.digits)
	for !e.done {
		e.try()
		i := len(e.digits) - 1
		for ; i >= 0; i-- {
			if e.digits[i]++; e.digits[i] < e.bounds[i][1]-e.bounds[i][0] {
				break
			}
			e.digits[i] = 0
			e.choice[i] = e.allowed[e.bounds[i][0]]
		}
		if i < 0 {
			return
		}
		e.choice[i] = e.allowed[e.bounds[i][0]+e.digits[i]]
	}
}

// oldest chooses for every cell what is certain: nothing in flight landed.
func (e *enumerator) oldest() {
	for i, b := range e.bounds {
		e.choice[i] = e.allowed[b[0]]
	}
}

// newest chooses for every cell its last version: everything landed.
func (e *enumerator) newest() {
	e.oldest()
	for _, v := range e.plan.steps {
		if e.allows(v.cell, v.option) {
			e.choice[v.cell] = v.option
		}
	}
}

func (e *enumerator) allows(cell, option int) bool {
	b := e.bounds[cell]
	return slices.Contains(e.allowed[b[0]:b[1]], option)
}

func (e *enumerator) prefixes() {
	e.oldest()
	e.try()
	for _, v := range e.plan.steps {
		if e.allows(v.cell, v.option) {
			e.choice[v.cell] = v.option
			e.try()
		}
	}
}

// oneMissing lets everything land except the last version of one cell.
func (e *enumerator) oneMissing() {
	e.newest()
	for i, c := range e.plan.cells {
		last := e.choice[i]
		e.choice[i] = e.allowed[e.bounds[i][0]]
		for _, v := range e.plan.versions[c.vFrom:c.vTo] {
			if v.option != last && e.allows(i, v.option) {
				e.choice[i] = v.option
			}
		}
		if e.choice[i] != last {
			e.try()
		}
		e.choice[i] = last
	}
}

// oneOnly lets nothing land except one version of one cell.
func (e *enumerator) oneOnly() {
	e.oldest()
	for _, v := range e.plan.steps {
		old := e.choice[v.cell]
		if v.option == old || !e.allows(v.cell, v.option) {
			continue
		}
		e.choice[v.cell] = v.option
		e.try()
		e.choice[v.cell] = old
	}
}

// oneGarbage lets one sector end as garbage, with nothing else landed and with
// everything landed.
func (e *enumerator) oneGarbage() {
	for _, base := range []func(){e.oldest, e.newest} {
		base()
		for i := e.plan.nData; i < len(e.plan.cells); i++ {
			old := e.choice[i]
			for _, o := range e.allowed[e.bounds[i][0]:e.bounds[i][1]] {
				if e.plan.options[e.plan.cells[i].from+o].isGarbage {
					e.choice[i] = o
					e.try()
				}
			}
			e.choice[i] = old
		}
	}
}

// choose picks at random: first how much landed, then for each cell whether and
// what.
func (e *enumerator) choose(rng *rand.Rand) {
	percent := rng.IntN(101)
	for i, b := range e.bounds {
		e.choice[i] = e.allowed[b[0]]
		if n := b[1] - b[0]; n > 1 && rng.IntN(100) < percent {
			e.choice[i] = e.allowed[b[0]+1+rng.IntN(n-1)]
		}
	}
}

// try visits the image of the present choice, unless an equal one was visited.
func (e *enumerator) try() {
	if e.done {
		return
	}
	e.stats.Tried++
	h := e.plan.hashOf(e.choice, e.sums)
	if _, ok := e.seen[h]; ok {
		return
	}
	e.seen[h] = struct{}{}
	e.stats.Distinct++
	e.build()
	e.done = !e.visit(e.img)
}
