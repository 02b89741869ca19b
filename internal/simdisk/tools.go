package simdisk

import (
	"io/fs"
	"slices"
)

// Clone returns an independent copy: the same view, the same content on disk,
// the same things in flight. It has no hook, no faults, no handles, no locks,
// and an empty log that begins with this one's.
func (s *FS) Clone() *FS {
	log := s.Log()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &FS{
		Capacity: s.Capacity, NoPunch: s.NoPunch, Where: s.Where,
		seq: s.seq, journaled: s.journaled, used: s.used,
		origin: &ancestry{parent: log},
	}
	twin := make(map[*inode]*inode, len(s.nodes))
	for _, n := range s.nodes {
		t := c.newNode()
		twin[n] = t
		t.id, t.name, t.links = n.id, n.name, n.links
		t.size, t.diskSize, t.unclean = n.size, n.diskSize, n.unclean
		t.live.copyFrom(&c.arena, &n.live)
		t.disk.copyFrom(&c.arena, &n.disk)
		t.pending, t.sizes = slices.Clone(n.pending), slices.Clone(n.sizes)
	}
	for _, b := range s.names {
		c.names = append(c.names, binding{b.name, twin[b.node]})
	}
	for _, b := range s.diskNames {
		c.diskNames = append(c.diskNames, binding{b.name, twin[b.node]})
	}
	for _, a := range s.renames {
		c.renames = append(c.renames, nameAtom{a.seq, a.name, twin[a.node]})
	}
	return c
}

// Hash returns a hash of what the running system sees: every name and the
// content behind it. Equal file systems have equal hashes in every run.
func (s *FS) Hash() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var h uint64
	for _, b := range s.names {
		var sum uint64
		b.node.live.present(0, int64(len(b.node.live.chunks))*chunkSectors, func(i int64, s *sector) {
			sum += term(i, s.hash())
		})
		h += mix(hashName(b.name), mix(uint64(b.node.size)+1, sum))
	}
	return h
}

// ReadFile returns what the running system sees of a file.
func (s *FS) ReadFile(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.lookup(name)
	if n == nil {
		return nil, wrap("read", name, fs.ErrNotExist)
	}
	b := make([]byte, n.size)
	n.read(b, 0)
	return b, nil
}

// WriteFile gives a file new content, creating it if need be. The file, its
// content and its name are durable at once; no crash point, no fault and no
// limit applies. A file that exists stays the same file.
func (s *FS) WriteFile(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.lookup(name)
	if n == nil {
		n = s.newNode()
		s.rebind(s.next(), name, n)
	}
	i := slices.IndexFunc(s.renames, func(a nameAtom) bool { return a.name == name })
	for ; i >= 0; i = slices.IndexFunc(s.renames, func(a nameAtom) bool { return a.name == name }) {
		s.renames = slices.Delete(s.renames, i, i+1)
	}
	s.diskNames = bind(s.diskNames, name, n)
	s.erase(n, 0, n.size, true)
	n.size = 0
	s.write(n, data, 0)
	n.unclean, n.sizes = false, n.sizes[:0]
	for i := range n.pending {
		n.pending[i].isLost = false
	}
	n.settle(&s.arena, s.seq)
	n.size, n.diskSize = int64(len(data)), int64(len(data))
}
