package securedir

import (
	"maps"
	"slices"
	"sync"
	"syscall"
)

// Sim is a machine with one file system, for tests: it separates what a running
// system sees from what the disk holds, so that power can be cut at any moment
// with any legal subset of the effects that no successful sync covers. It
// simulates what this package uses and nothing more.
//
// The rules of loss: bytes (by 512-byte sector), sizes, modes and each change
// of a directory are separate effects; a sync that returns nil makes the
// effects it covers durable; a failed one leaves them visible, reports once,
// and a later nil does not cover them unless their page was written again.
type Sim struct {
	mu      sync.Mutex
	root    *simNode
	inodes  uint64
	effects []*simEffect // in the order they happened; none of them durable
}

// simNode is an object. The live half is what calls see, the disk half what a
// power cut leaves.
type simNode struct {
	stat   Stat // Links, Size and Mode are live
	data   []byte
	names  map[string]*simNode // directories
	disk   simDisk
	flock  simLock
	ranges map[int64]*simLock
}

type simDisk struct {
	data  []byte
	mode  uint32
	names map[string]*simNode
}

type simLock struct {
	exclusive *simOpen
	shared    map[*simOpen]bool
}

type effectKind uint8

const (
	effectData effectKind = iota
	effectSize
	effectMode
	effectNames
)

// simEffect is one change of one node's disk half that is not durable yet.
type simEffect struct {
	node     *simNode
	kind     effectKind
	off      int64
	data     []byte
	size     int64
	mode     uint32
	set      string // effectNames: the name that gains child
	child    *simNode
	drop     string // effectNames: the name that is lost
	doubtful bool   // a sync of it failed: visible, perhaps never on disk
}

const (
	simSector = 512
	simPage   = 4096
)

// Fate is what becomes of an effect in a power cut.
type Fate uint8

// The fates. Garbled is for bytes in flight only; elsewhere it means Lost.
const (
	Lost Fate = iota
	Kept
	Garbled
)

// NewSim is a machine with an empty root directory owned by root.
func NewSim() *Sim {
	s := &Sim{}
	s.root = s.node(Directory, 0o755, 0)
	return s
}

func (s *Sim) node(kind Kind, mode, uid uint32) *simNode {
	s.inodes++
	n := &simNode{
		stat:   Stat{Device: 1, Inode: s.inodes, Birth: int64(s.inodes), Kind: kind, Mode: mode, UID: uid, Links: 1},
		ranges: map[int64]*simLock{},
		disk:   simDisk{mode: mode},
	}
	if kind == Directory {
		n.names, n.disk.names = map[string]*simNode{}, map[string]*simNode{}
	}
	return n
}

// Effects is how many effects a power cut now decides about.
func (s *Sim) Effects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.effects)
}

// PowerCut is the machine after power was lost now and came back: pick decides
// for each effect in turn. The machine itself is unchanged, and no process
// lives in the new one.
func (s *Sim) PowerCut(pick func(i int) Fate) *Sim {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &Sim{inodes: s.inodes}
	copies := map[*simNode]*simNode{}
	var clone func(n *simNode) *simNode
	clone = func(n *simNode) *simNode {
		if c, ok := copies[n]; ok {
			return c
		}
		c := &simNode{stat: n.stat, ranges: map[int64]*simLock{}}
		c.disk = simDisk{data: slices.Clone(n.disk.data), mode: n.disk.mode}
		copies[n] = c
		if n.names != nil {
			c.disk.names = map[string]*simNode{}
			for name, child := range n.disk.names {
				c.disk.names[name] = clone(child)
			}
		}
		return c
	}
	out.root = clone(s.root)
	for i, e := range s.effects {
		fate := pick(i)
		if fate == Lost || (fate == Garbled && e.kind != effectData) {
			continue
		}
		moved := *e
		moved.node = clone(e.node)
		if e.child != nil {
			moved.child = clone(e.child)
		}
		if fate == Garbled {
			moved.data = slices.Clone(e.data)
			for j := range moved.data {
				moved.data[j] ^= byte(j*7) | 1
			}
		}
		moved.apply()
	}
	out.boot()
	return out
}

// boot makes the live half what the disk holds.
func (s *Sim) boot() {
	seen := map[*simNode]bool{}
	var visit func(n *simNode)
	visit = func(n *simNode) {
		if n.stat.Links++; seen[n] {
			return
		}
		seen[n] = true
		n.stat.Links = 1
		n.data = slices.Clone(n.disk.data)
		n.stat.Mode, n.stat.Size = n.disk.mode, int64(len(n.data))
		if n.disk.names != nil {
			n.names = maps.Clone(n.disk.names)
			for _, child := range n.names {
				visit(child)
			}
		}
	}
	visit(s.root)
}

// apply puts an effect on the disk.
func (e *simEffect) apply() {
	d := &e.node.disk
	switch e.kind {
	case effectData:
		d.data = grow(d.data, e.off+int64(len(e.data)))
		copy(d.data[e.off:], e.data)
	case effectSize:
		d.data = grow(d.data, e.size)
	case effectMode:
		d.mode = e.mode
	case effectNames:
		if e.drop != "" {
			delete(d.names, e.drop)
		}
		if e.set != "" {
			d.names[e.set] = e.child
		}
	}
}

func grow(b []byte, n int64) []byte {
	if int64(len(b)) >= n {
		return b
	}
	return append(b, make([]byte, n-int64(len(b)))...)
}

// sync makes a node's effects durable; a data sync leaves the mode. A durable
// change of a name settles every older doubt about that name.
func (s *Sim) sync(n *simNode, all bool) {
	settled := map[string]bool{}
	kept := s.effects[:0:0]
	for _, e := range slices.Backward(s.effects) {
		switch {
		case e.node != n || (!all && e.kind == effectMode):
			kept = append(kept, e)
		case !e.doubtful:
			if e.set != "" {
				settled[e.set] = true
			}
		case e.set == "" || !settled[e.set]:
			kept = append(kept, e)
		}
	}
	for _, e := range s.effects {
		if e.node == n && !e.doubtful && (all || e.kind != effectMode) {
			e.apply()
		}
	}
	slices.Reverse(kept)
	s.effects = kept
}

// doubt is what a failed sync does.
func (s *Sim) doubt(n *simNode) {
	for _, e := range s.effects {
		if e.node == n {
			e.doubtful = true
		}
	}
}

func (s *Sim) effect(e simEffect) { s.effects = append(s.effects, &e) }

// write changes the live bytes and records what changed, sector by sector.
func (s *Sim) write(n *simNode, p []byte, off int64) {
	end := off + int64(len(p))
	if end > n.stat.Size {
		n.data = grow(n.data, end)
		n.stat.Size = end
		s.effect(simEffect{node: n, kind: effectSize, size: end})
	}
	for len(p) > 0 {
		k := min(int64(len(p)), simSector-off%simSector)
		if !slices.Equal(n.data[off:off+k], p[:k]) {
			copy(n.data[off:], p[:k])
			s.effect(simEffect{node: n, kind: effectData, off: off, data: slices.Clone(p[:k])})
		}
		s.redirty(n, off)
		p, off = p[k:], off+k
	}
}

// redirty takes doubt from the page at off: it was written again as a whole.
func (s *Sim) redirty(n *simNode, off int64) {
	for _, e := range s.effects {
		if e.node == n && e.kind == effectData && e.off/simPage == off/simPage {
			e.doubtful = false
		}
	}
}

// rename moves a live name; drop and set are one effect.
func (s *Sim) rename(dir *simNode, from, to string, how How) error {
	child, ok := dir.names[from]
	if !ok {
		return syscall.ENOENT
	}
	if old, taken := dir.names[to]; taken {
		if how == NoReplace {
			return syscall.EEXIST
		}
		old.stat.Links--
	}
	delete(dir.names, from)
	dir.names[to] = child
	s.effect(simEffect{node: dir, kind: effectNames, set: to, child: child, drop: from})
	return nil
}

func (s *Sim) unlink(dir *simNode, name string, kind Kind) error {
	child, ok := dir.names[name]
	switch {
	case !ok:
		return syscall.ENOENT
	case (child.stat.Kind == Directory) != (kind == Directory):
		return syscall.EISDIR
	case len(child.names) > 0:
		return syscall.ENOTEMPTY
	}
	child.stat.Links--
	delete(dir.names, name)
	s.effect(simEffect{node: dir, kind: effectNames, drop: name})
	return nil
}

func (s *Sim) link(dir *simNode, name string, child *simNode) {
	dir.names[name] = child
	s.effect(simEffect{node: dir, kind: effectNames, set: name, child: child})
}

// take works a lock for one open descriptor.
func (l *simLock) take(o *simOpen, op Lock) error {
	others := len(l.shared)
	if l.shared[o] {
		others--
	}
	held := l.exclusive != nil && l.exclusive != o
	switch op {
	case Unlock:
		l.drop(o)
	case LockShared:
		if held {
			return ErrLocked
		}
		l.drop(o)
		if l.shared == nil {
			l.shared = map[*simOpen]bool{}
		}
		l.shared[o] = true
	case LockExclusive, LockProbe:
		if held || others > 0 {
			return ErrLocked
		}
		if op == LockExclusive {
			l.drop(o)
			l.exclusive = o
		}
	}
	return nil
}

func (l *simLock) drop(o *simOpen) {
	if l.exclusive == o {
		l.exclusive = nil
	}
	delete(l.shared, o)
}
