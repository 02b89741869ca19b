package simdisk

import "slices"

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

	ops [][2]int // the operations in flight, as stretches of plan.steps

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
