package simdisk

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// What the simulated system reports besides the errors of package disk.
var (
	// ErrIO is the input/output error of an injected fault that names no other.
	ErrIO = errors.New("simdisk: input/output error")
	// ErrKilled comes from every handle opened before FS.Kill, and from handles
	// of an image whose turn is over.
	ErrKilled = errors.New("simdisk: the process was killed")
)

// FS is a simulated file system of one directory. Dir gives access to it the
// way a process has it; the methods of FS itself are the test's, and change
// nothing about durability unless they say so. FS is safe for concurrent use.
//
// The exported fields are set before anything runs.
type FS struct {
	// Capacity is the room for file contents in bytes, rounded down to whole
	// sectors; 0 means no limit.
	Capacity int64
	// NoPunch makes every Punch fail with disk.ErrNoPunch.
	NoPunch bool
	// Where is what FileSystem reports; a zero Name becomes "simdisk".
	Where disk.FileSystem

	mu     sync.Mutex
	life   uint64    // +1 at every Kill; a handle of an earlier life is dead
	before func(Op)  // the test's hook
	faults []*armed  // injected failures that have not struck yet
	log    []Op      // every operation so far
	origin *ancestry // how this image came to be; nil if it is none

	seq       uint64 // the last operation that changed anything
	journaled uint64 // the newest metadata operation that any sync covered
	used      int64  // sectors that are not holes, if there is a Capacity

	names     []binding  // what the running system sees, sorted by name
	diskNames []binding  // what no power cut takes away, sorted by name
	renames   []nameAtom // names in flight, oldest first

	nodes []*inode // every file, named or not, in order of creation
	spare []*inode // empty ones for reuse
	arena arena
	work  *enumerator // buffers of EachImage, kept between calls
}

// binding is a name and the file it leads to.
type binding struct {
	name string
	node *inode
}

// nameAtom is a change of one name that no successful Dir.Sync covers.
type nameAtom struct {
	seq  uint64
	name string
	node *inode // nil: the name is gone
}

// New returns an empty file system.
func New() *FS { return &FS{} }

// Dir opens the directory, as a process would. Any number may be open.
func (s *FS) Dir() disk.Dir {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &dir{fs: s, life: s.life}
}

// Kill ends the process that uses the file system: its handles report
// ErrKilled from now on and its locks are dropped. What it wrote stays visible,
// as in a page cache, and what it did not sync stays in flight.
func (s *FS) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

func (s *FS) kill() {
	s.life++
	for _, n := range s.nodes {
		n.locked = nil
	}
}

// find returns where a name is, or would be, in a sorted list.
func find(list []binding, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(b binding, name string) int {
		return strings.Compare(b.name, name)
	})
}

// lookup returns the file that a name leads to in the running system.
func (s *FS) lookup(name string) *inode {
	if i, ok := find(s.names, name); ok {
		return s.names[i].node
	}
	return nil
}

// bind makes a name lead to node, or nowhere for nil, in a sorted list.
func bind(list []binding, name string, node *inode) []binding {
	i, ok := find(list, name)
	switch {
	case ok && node == nil:
		return slices.Delete(list, i, i+1)
	case ok:
		list[i].node = node
		return list
	case node == nil:
		return list
	}
	return slices.Insert(list, i, binding{name, node})
}

// rebind changes a name in the running system and leaves the change in flight.
func (s *FS) rebind(seq uint64, name string, node *inode) {
	if old := s.lookup(name); old != nil {
		old.links--
	}
	if node != nil {
		node.links++
		node.name = name
	}
	s.names = bind(s.names, name, node)
	s.renames = append(s.renames, nameAtom{seq, name, node})
}

// settleNames makes the names of operations up to seq durable.
func (s *FS) settleNames(upTo uint64) {
	for _, a := range s.renames {
		if a.seq <= upTo {
			s.diskNames = bind(s.diskNames, a.name, a.node)
			s.journaled = max(s.journaled, a.seq)
		}
	}
	s.renames = slices.DeleteFunc(s.renames, func(a nameAtom) bool { return a.seq <= upTo })
}

// newNode returns an empty file without a name.
func (s *FS) newNode() *inode {
	var n *inode
	if last := len(s.spare) - 1; last >= 0 {
		n, s.spare = s.spare[last], s.spare[:last]
	} else {
		n = new(inode)
	}
	n.id = len(s.nodes)
	s.nodes = append(s.nodes, n)
	return n
}

func (s *FS) next() uint64 {
	s.seq++
	return s.seq
}
