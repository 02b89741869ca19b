package simdisk

import (
	"cmp"
	"slices"
	"strings"
)

// A plan is what a power cut leaves open: cells that must be decided one by
// one, and for each the options. It is made once per crash point; every image
// is one choice of an option for each cell.
//
// Cells come in the order names, sizes, sectors. Buffers are kept between
// plans.
type plan struct {
	opts  ImageOptions
	cells []cell
	nSize int // where the sizes begin in cells
	nData int // where the sectors begin in cells

	options  []option
	versions []step
	names    []string // the name of cell i, for i < nSize
	nodes    []planNode
	steps    []step // all versions, in the order in which they were written

	cuts  []uint64 // Mode Journal: the metadata operations that may be the last to land
	known uint64   // metadata up to this operation has landed for sure

	fs    *FS   // where the plan was made, for messages
	base  int   // operations that were in its log
	arena arena // holds the copies of contents and the garbage
	order []int // scratch
}

// cell is one thing that must be decided.
type cell struct {
	node       int   // index in plan.nodes; -1 for a name
	index      int64 // which sector, for a sector
	from, to   int   // its options, in plan.options
	vFrom, vTo int   // its versions, in plan.versions, oldest first
}

// option is one way in which a cell may end. The first one of a cell is always
// what a power cut cannot take away.
type option struct {
	data      *sector // for a sector
	size      int64   // for a size
	node      int     // for a name: index in plan.nodes, -1 for none
	sum       uint64  // for a sector: what it adds to its file's hash
	isGarbage bool    // no version of the cell, but what rule 5 allows
}

// step is one version of a cell.
type step struct {
	seq    uint64
	cell   int
	option int // among the cell's
	isMeta bool
	isLost bool
}

// planNode is a file that some image has a name for.
type planNode struct {
	node  *inode   // only to compare with: it lives on while images are built
	id    int      // the inode's
	name  string   // likewise
	disk  content  // likewise, as it was
	size  int      // its size cell
	first int      // its first sector cell
	last  int      // one past its last sector cell
	sums  []uint64 // per size option: hash of the sectors that are no cells
}

// make fills the plan from the present state of s.
func (p *plan) make(s *FS, opts ImageOptions) {
	p.fs, p.opts, p.base, p.known = s, opts, len(s.log), s.journaled
	p.cells, p.options, p.versions = p.cells[:0], p.options[:0], p.versions[:0]
	p.names, p.cuts = p.names[:0], p.cuts[:0]
	p.arena.reset()
	p.findNodes(s)
	p.addNames(s)
	p.nSize = len(p.cells)
	for i := range p.nodes {
		p.addSize(i)
	}
	p.nData = len(p.cells)
	for i := range p.nodes {
		p.addSectors(i)
	}
	p.steps = append(p.steps[:0], p.versions...)
	slices.SortStableFunc(p.steps, func(a, b step) int { return cmp.Compare(a.seq, b.seq) })
	p.addSums()
	p.findCuts()
}

// findNodes lists the files that are reachable in some image, in order of
// creation.
func (p *plan) findNodes(s *FS) {
	p.nodes = p.nodes[:0]
	for _, n := range s.nodes {
		named := slices.ContainsFunc(s.diskNames, func(b binding) bool { return b.node == n }) ||
			slices.ContainsFunc(s.renames, func(a nameAtom) bool { return a.node == n })
		if !named {
			continue
		}
		if len(p.nodes) < cap(p.nodes) {
			p.nodes = p.nodes[:len(p.nodes)+1]
		} else {
			p.nodes = append(p.nodes, planNode{})
		}
		at := &p.nodes[len(p.nodes)-1]
		*at = planNode{node: n, id: n.id, name: n.name, sums: at.sums[:0], disk: content{at.disk.chunks[:0]}}
		at.disk.copyFrom(&p.arena, &n.disk)
	}
}

func (p *plan) indexOf(n *inode) int {
	if n == nil {
		return -1
	}
	return slices.IndexFunc(p.nodes, func(pn planNode) bool { return pn.node == n })
}

// open begins a cell whose certain outcome is o.
func (p *plan) open(node int, index int64, o option) *cell {
	from, vFrom := len(p.options), len(p.versions)
	p.options = append(p.options, o)
	p.cells = append(p.cells, cell{node: node, index: index, from: from, to: from + 1, vFrom: vFrom, vTo: vFrom})
	return &p.cells[len(p.cells)-1]
}

// add gives the last cell another version; versions that are alike share an
// option.
func (p *plan) add(v step, o option) {
	c := &p.cells[len(p.cells)-1]
	v.cell = len(p.cells) - 1
	v.option = p.addOption(c, o)
	p.versions = append(p.versions, v)
	c.vTo = len(p.versions)
}

func (p *plan) addOption(c *cell, o option) int {
	for i, have := range p.options[c.from:c.to] {
		if have.size == o.size && have.node == o.node && have.data.hash() == o.data.hash() {
			return i
		}
	}
	p.options = append(p.options, o)
	c.to = len(p.options)
	return c.to - c.from - 1
}

func (p *plan) addNames(s *FS) {
	for _, b := range s.diskNames {
		p.names = append(p.names, b.name)
	}
	for _, a := range s.renames {
		p.names = append(p.names, a.name)
	}
	slices.Sort(p.names)
	p.names = slices.Compact(p.names)
	for _, name := range p.names {
		certain := option{node: -1}
		if i, ok := find(s.diskNames, name); ok {
			certain.node = p.indexOf(s.diskNames[i].node)
		}
		p.open(-1, 0, certain)
		for _, a := range s.renames {
			if a.name == name {
				p.add(step{seq: a.seq, isMeta: true}, option{node: p.indexOf(a.node)})
			}
		}
	}
}

func (p *plan) addSize(i int) {
	n := p.nodes[i].node
	p.nodes[i].size = len(p.cells)
	p.open(i, 0, option{size: n.diskSize})
	for _, a := range n.sizes {
		p.add(step{seq: a.seq, isMeta: true, isLost: a.isLost}, option{size: a.size})
	}
}

// addSectors makes a cell of every sector in flight whose outcome is open.
func (p *plan) addSectors(i int) {
	n := p.nodes[i].node
	p.nodes[i].first = len(p.cells)
	p.order = p.order[:0]
	for v := range n.pending {
		p.order = append(p.order, v)
	}
	slices.SortStableFunc(p.order, func(a, b int) int {
		return cmp.Compare(n.pending[a].index, n.pending[b].index)
	})
	for at := 0; at < len(p.order); {
		index := n.pending[p.order[at]].index
		c := p.open(i, index, option{data: n.disk.get(index)})
		for ; at < len(p.order) && n.pending[p.order[at]].index == index; at++ {
			v := n.pending[p.order[at]]
			p.add(step{seq: v.seq, isMeta: v.isMeta, isLost: v.isLost}, option{data: v.data})
		}
		p.addGarbage(c, n)
		if c.to-c.from == 1 { // every version is what is on disk already
			p.options, p.versions = p.options[:c.from], p.versions[:c.vFrom]
			p.cells = p.cells[:len(p.cells)-1]
		}
	}
	p.nodes[i].last = len(p.cells)
}

// addGarbage gives an unprotected sector the outcomes of rule 5.
func (p *plan) addGarbage(c *cell, n *inode) {
	if !p.opts.Garbage || (p.opts.Protected != nil && p.opts.Protected(n.name, c.index*SectorSize)) {
		return
	}
	p.addOption(c, option{isGarbage: true})
	noise := p.arena.sector()
	state := mix(mix(p.opts.Seed, uint64(n.id)), uint64(c.index))
	for i := range noise.bytes {
		if i%8 == 0 {
			state = mix(state, uint64(i)+1)
		}
		noise.bytes[i] = byte(state >> (i % 8 * 8))
	}
	p.addOption(c, option{data: noise, isGarbage: true})
}

// term is what a sector adds to the hash of its file.
func term(index int64, sum uint64) uint64 {
	if sum == 0 {
		return 0
	}
	return mix(uint64(index), sum)
}

// addSums prepares the hashing of images: what each option of a sector adds,
// and per possible size what the certain sectors of the file add.
func (p *plan) addSums() {
	for i := p.nData; i < len(p.cells); i++ {
		c := p.cells[i]
		for o := c.from; o < c.to; o++ {
			p.options[o].sum = term(c.index, p.options[o].data.hash())
		}
	}
	for i := range p.nodes {
		pn := &p.nodes[i]
		c := p.cells[pn.size]
		for _, o := range p.options[c.from:c.to] {
			pn.sums = append(pn.sums, p.certainSum(pn, o.size))
		}
	}
}

func (p *plan) certainSum(pn *planNode, size int64) uint64 {
	var sum uint64
	cells := p.cells[pn.first:pn.last]
	_, to := sectorsIn(0, size)
	pn.disk.present(0, to, func(i int64, s *sector) {
		for len(cells) > 0 && cells[0].index < i {
			cells = cells[1:]
		}
		if len(cells) == 0 || cells[0].index != i {
			sum += term(i, s.hashWithin(size-i*SectorSize))
		}
	})
	return sum
}

// findCuts lists how far the metadata may have got: nowhere beyond what is
// known, or up to any operation that still has metadata in flight.
func (p *plan) findCuts() {
	p.cuts = append(p.cuts, p.known)
	for _, v := range p.steps {
		if v.isMeta && !v.isLost && v.seq > p.cuts[len(p.cuts)-1] {
			p.cuts = append(p.cuts, v.seq)
		}
	}
}

// hashOf returns the hash of the image that a choice of options makes.
func (p *plan) hashOf(choice []int, sums []uint64) uint64 {
	for i := range p.nodes {
		sums[i] = p.nodeHash(&p.nodes[i], choice)
	}
	var h uint64
	for i, name := range p.names {
		if n := p.options[p.cells[i].from+choice[i]].node; n >= 0 {
			h += mix(hashName(name), sums[n])
		}
	}
	return h
}

func (p *plan) nodeHash(pn *planNode, choice []int) uint64 {
	sizes := p.cells[pn.size]
	size := p.options[sizes.from+choice[pn.size]].size
	sum := pn.sums[choice[pn.size]]
	for i := pn.first; i < pn.last; i++ {
		c := &p.cells[i]
		o := &p.options[c.from+choice[i]]
		switch left := size - c.index*SectorSize; {
		case left >= SectorSize:
			sum += o.sum
		case left > 0:
			sum += term(c.index, hashPrefix(o.data, int(left)))
		}
	}
	return mix(uint64(size)+1, sum)
}

func hashName(name string) uint64 {
	h := uint64(len(name)) + 1
	for ; len(name) > 0; name = name[min(8, len(name)):] {
		var word uint64
		for i := range min(8, len(name)) {
			word |= uint64(name[i]) << (8 * i)
		}
		h = mix(h, word)
	}
	return h
}

// describe says in words what a choice of options means.
func (p *plan) describe(choice []int) string {
	var b strings.Builder
	for i, c := range p.cells {
		if c.to-c.from == 1 {
			continue
		}
		p.describeCell(&b, i, choice[i])
	}
	return b.String()
}
