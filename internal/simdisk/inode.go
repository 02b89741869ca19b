package simdisk

import "slices"

// inode is a file without its names.
//
// Invariant: the running system's view of a sector is the last pending version
// of it, or what is on disk if there is none; beyond size the view is holes.
type inode struct {
	id     int    // order of creation within the FS, from 0
	name   string // the last name it was given, for messages and callbacks
	links  int    // names that lead here in the running system
	locked *file  // the handle that holds the writer lock

	live content // what the running system sees
	size int64   // bytes, in the running system

	disk     content // what no power cut takes away, save for pending versions
	diskSize int64   // bytes, likewise

	pending []version  // sector versions in flight, oldest first
	sizes   []sizeAtom // sizes in flight, oldest first
	unclean bool       // some of pending or sizes is lost
}

// version is a sector's content that no successful sync covers.
type version struct {
	seq    uint64 // the operation that wrote it
	index  int64  // which sector
	data   *sector
	isMeta bool // a truncation's zeros: the journal orders it
	isLost bool // a failed sync gave it up: no later one persists it
}

// sizeAtom is a file size that no successful sync covers.
type sizeAtom struct {
	seq    uint64
	size   int64
	isLost bool
}

// put makes data the newest version of a sector.
func (n *inode) put(a *arena, v version) {
	n.live.set(a, v.index, v.data)
	n.pending = append(n.pending, v)
}

// resize makes size the newest size. Setting the size that the file has counts
// only while an earlier one is uncertain.
func (n *inode) resize(seq uint64, size int64) {
	if size == n.size && !n.sizeLost() {
		return
	}
	n.size = size
	n.sizes = append(n.sizes, sizeAtom{seq: seq, size: size})
}

func (n *inode) sizeLost() bool {
	return n.unclean && slices.ContainsFunc(n.sizes, func(a sizeAtom) bool { return a.isLost })
}

// settle makes durable whatever operations up to seq have in flight, and
// returns the newest metadata operation among it, or 0.
func (n *inode) settle(a *arena, upTo uint64) (meta uint64) {
	var rewritten map[int64]bool // the sectors that this sync covers, if any is lost
	if n.unclean {
		rewritten = map[int64]bool{}
	}
	for _, v := range n.pending {
		if v.seq > upTo || v.isLost {
			continue
		}
		n.disk.set(a, v.index, v.data)
		if n.unclean {
			rewritten[v.index] = true
		}
		if v.isMeta {
			meta = max(meta, v.seq)
		}
	}
	n.pending = slices.DeleteFunc(n.pending, func(v version) bool {
		return v.seq <= upTo && (!v.isLost || rewritten[v.index])
	})
	resized := false
	for _, s := range n.sizes {
		if s.seq <= upTo && !s.isLost {
			n.diskSize, resized, meta = s.size, true, max(meta, s.seq)
		}
	}
	n.sizes = slices.DeleteFunc(n.sizes, func(s sizeAtom) bool {
		return s.seq <= upTo && (!s.isLost || resized)
	})
	n.unclean = n.unclean && n.anyLost()
	return meta
}

// abandon is a failed sync: what it should have covered stays in flight for
// good.
func (n *inode) abandon(upTo uint64) {
	for i := range n.pending {
		n.pending[i].isLost = n.pending[i].isLost || n.pending[i].seq <= upTo
	}
	for i := range n.sizes {
		n.sizes[i].isLost = n.sizes[i].isLost || n.sizes[i].seq <= upTo
	}
	n.unclean = n.anyLost()
}

func (n *inode) anyLost() bool {
	return slices.ContainsFunc(n.pending, func(v version) bool { return v.isLost }) ||
		slices.ContainsFunc(n.sizes, func(s sizeAtom) bool { return s.isLost })
}

// read copies what the running system sees at off, within the size.
func (n *inode) read(p []byte, off int64) int {
	total := int(min(int64(len(p)), max(0, n.size-off)))
	readSectors(&n.live, p[:total], off)
	return total
}

// readSectors fills p from a content.
func readSectors(c *content, p []byte, off int64) {
	for len(p) > 0 {
		at := int(off % SectorSize)
		k := min(SectorSize-at, len(p))
		if s := c.get(off / SectorSize); s != nil {
			copy(p[:k], s.bytes[at:])
		} else {
			clear(p[:k])
		}
		p, off = p[k:], off+int64(k)
	}
}

// reset empties an inode for reuse.
func (n *inode) reset() {
	*n = inode{
		live:    content{n.live.chunks[:0]},
		disk:    content{n.disk.chunks[:0]},
		pending: n.pending[:0],
		sizes:   n.sizes[:0],
	}
}
