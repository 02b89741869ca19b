package simdisk

import (
	"bytes"
	"fmt"
	"strings"
)

// ancestry says how an image came to be, for messages.
type ancestry struct {
	parent string // the log of what led here, once rendered
	plan   *plan  // or where to render it from
	choice []int
	number int
}

func (a *ancestry) describe() string {
	if a.plan == nil {
		return a.parent
	}
	var b strings.Builder
	s := a.plan.fs
	if s.origin != nil {
		b.WriteString(s.origin.describe())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range s.log[:min(a.plan.base, len(s.log))] {
		b.WriteString(op.String())
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "power cut: image %d\n", a.number)
	b.WriteString(a.plan.describe(a.choice))
	return b.String()
}

func (p *plan) describeCell(b *strings.Builder, i, choice int) {
	c := p.cells[i]
	o := p.options[c.from+choice]
	state := fmt.Sprintf("version %d of %d", choice, c.to-c.from-1)
	switch {
	case choice == 0:
		state = "old"
	case o.isGarbage && o.data == nil:
		state = "garbage (zeros)"
	case o.isGarbage:
		state = "garbage (noise)"
	}
	switch {
	case i < p.nSize && o.node < 0:
		fmt.Fprintf(b, "  name %s: absent\n", p.names[i])
	case i < p.nSize:
		fmt.Fprintf(b, "  name %s: file %d\n", p.names[i], p.nodes[o.node].id)
	case i < p.nData:
		n := &p.nodes[c.node]
		fmt.Fprintf(b, "  size of file %d (%s): %d, %s\n", n.id, n.name, o.size, state)
	default:
		n := &p.nodes[c.node]
		fmt.Fprintf(b, "  sector %d of file %d (%s): %s\n", c.index, n.id, n.name, state)
	}
}

// build makes the image of the present choice in e.img.
func (e *enumerator) build() {
	img, p := e.img, &e.plan
	img.mu.Lock()
	defer img.mu.Unlock()
	img.clear()
	if img.origin == nil {
		img.origin = &ancestry{plan: p}
	}
	img.origin.choice = append(img.origin.choice[:0], e.choice...)
	img.origin.number = e.stats.Tried - 1
	for i, name := range p.names {
		at := p.options[p.cells[i].from+e.choice[i]].node
		if at < 0 {
			continue
		}
		n := img.imageOf(p, at, e.choice)
		n.name = name
		n.links++
		img.names = append(img.names, binding{name, n})
	}
	img.diskNames = append(img.diskNames[:0], img.names...)
	if img.Capacity != 0 {
		img.count()
	}
}

// clear empties a file system for reuse. Handles of its earlier life are dead.
func (s *FS) clear() {
	s.life++
	s.before, s.faults, s.log = nil, s.faults[:0], s.log[:0]
	s.seq, s.journaled, s.used = 0, 0, 0
	s.names, s.diskNames, s.renames = s.names[:0], s.diskNames[:0], s.renames[:0]
	for _, n := range s.nodes {
		n.reset()
	}
	s.spare = append(s.spare, s.nodes...)
	s.nodes = s.nodes[:0]
	s.arena.reset()
}

// imageOf returns the image's file that goes with file at of the plan, making it
// if this is the first name that leads to it.
func (s *FS) imageOf(p *plan, at int, choice []int) *inode {
	for _, n := range s.nodes {
		if n.id == p.nodes[at].id {
			return n
		}
	}
	pn := &p.nodes[at]
	n := s.newNode()
	n.id = pn.id
	n.size = p.options[p.cells[pn.size].from+choice[pn.size]].size
	n.diskSize = n.size
	n.disk.chunks = append(n.disk.chunks[:0], pn.disk.chunks...)
	for i := pn.first; i < pn.last; i++ {
		c := &p.cells[i]
		if choice[i] != 0 {
			n.disk.set(&s.arena, c.index, p.options[c.from+choice[i]].data)
		}
	}
	s.cutOff(&n.disk, n.size)
	n.live.share(&n.disk)
	return n
}

// cutOff makes everything beyond size a hole.
func (s *FS) cutOff(c *content, size int64) {
	from, to := sectorsIn(size, int64(len(c.chunks))*chunkSectors*SectorSize)
	if rest := int(size % SectorSize); rest != 0 {
		var none [SectorSize]byte
		if old := c.get(from); old != nil && !bytes.Equal(old.bytes[rest:], none[rest:]) {
			c.set(&s.arena, from, s.compose(old, none[rest:], rest))
		}
		from++
	}
	c.present(from, to, func(i int64, _ *sector) { c.set(&s.arena, i, nil) })
}

// count finds out how much space is in use.
func (s *FS) count() {
	s.used = 0
	for _, n := range s.nodes {
		n.live.present(0, int64(len(n.live.chunks))*chunkSectors, func(int64, *sector) { s.used++ })
	}
}
