package simdisk

import (
	"math/rand/v2"
	"slices"
)

// space visits the images of what is allowed: all of them, or the ones that
// find most.
func (e *enumerator) space() {
	if e.combinations() <= 1<<e.opts.MaxBits {
		e.all()
		return
	}
	e.stats.Exhaustive = false
	e.oldest()
	e.prefixes(0)
	e.metadataOnly()
	e.prefixes(e.plan.nData)
	e.suffixes()
	e.operations()
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

// metadataOnly lets every name and every size land, and no data.
func (e *enumerator) metadataOnly() {
	e.newest()
	for i := e.plan.nData; i < len(e.plan.cells); i++ {
		e.choice[i] = e.allowed[e.bounds[i][0]]
	}
}

// prefixes lets cells from first on land one version at a time, in the order in
// which they were written, on top of the present choice.
func (e *enumerator) prefixes(first int) {
	e.try()
	for _, v := range e.plan.steps {
		if v.cell >= first && e.allows(v.cell, v.option) {
			e.choice[v.cell] = v.option
			e.try()
		}
	}
}

// suffixes lets things land one by one, the last written first.
func (e *enumerator) suffixes() {
	e.oldest()
	clear(e.digits) // here: 1 for a cell that has landed
	for _, v := range slices.Backward(e.plan.steps) {
		if e.digits[v.cell] == 0 && e.allows(v.cell, v.option) {
			e.digits[v.cell], e.choice[v.cell] = 1, v.option
			e.try()
		}
	}
}

// operations lets whole operations land or not: every subset of them if they
// are few, else all but one and only one. And it tears each in two while all
// others land.
func (e *enumerator) operations() {
	e.findOps()
	const few = 10
	if n := len(e.ops); n <= min(few, e.opts.MaxBits) {
		for set := range 1 << n {
			e.land(func(_, op int) bool { return set>>op&1 == 1 })
		}
	} else {
		for one := range n {
			e.land(func(_, op int) bool { return op != one })
			e.land(func(_, op int) bool { return op == one })
		}
	}
	for torn, stretch := range e.ops {
		data := stretch[0] // names and sizes come first and land
		for data < stretch[1] && e.plan.steps[data].cell < e.plan.nData {
			data++
		}
		middle := (data + stretch[1]) / 2
		e.land(func(i, op int) bool { return op != torn || i < middle })
		e.land(func(i, op int) bool { return op != torn || i < data || i >= middle })
	}
}

// findOps divides the steps into operations.
func (e *enumerator) findOps() {
	e.ops = e.ops[:0]
	for i, v := range e.plan.steps {
		if i == 0 || v.seq != e.plan.steps[i-1].seq {
			e.ops = append(e.ops, [2]int{i, i})
		}
		e.ops[len(e.ops)-1][1] = i + 1
	}
}

// land tries the image in which those steps landed that keep accepts by their
// position and by the number of their operation.
func (e *enumerator) land(keep func(i, op int) bool) {
	e.oldest()
	for op, stretch := range e.ops {
		for i := stretch[0]; i < stretch[1]; i++ {
			if v := e.plan.steps[i]; keep(i, op) && e.allows(v.cell, v.option) {
				e.choice[v.cell] = v.option
			}
		}
	}
	e.try()
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
	if !e.visit(e.img) {
		e.done, e.stats.Exhaustive = true, false
	}
}
