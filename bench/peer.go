// Package bench puts Tidemark beside other append-only logs and embedded
// stores, and beside the bare system calls that bound them all.
//
// A [Peer] is one contestant: how to open it, and what it does more or less
// than the others. Opened, it is a [Store], the few operations every workload
// is built from. The adapters add no cleverness of their own: each uses the
// public interface of what it adapts, at the durability the workload asks for.
//
// The module runs on Linux only: the floor is made of its system calls.
package bench

import (
	"errors"
	"slices"
)

// ErrWrapped means that a raw loop went round its pre-written file, so that
// its oldest records are gone. Only the commit workloads, which never read,
// let that happen.
var ErrWrapped = errors.New("bench: raw file went round")

// Mode is the durability of every commit of a store.
type Mode int

const (
	// Durable commits are on stable storage when they return.
	Durable Mode = iota
	// Deferred commits are durable only after the next Sync.
	Deferred
)

// Options say how a peer is opened.
type Options struct {
	Dir        string // existing directory, private to the store
	Mode       Mode   // durability of every Commit
	RecordSize int    // bytes of every record; raw loops keep no lengths
	Capacity   int64  // payload bytes expected; sizes what is pre-written
	Group      int    // records of every commit, 0 if they differ
	Callers    int    // goroutines that commit at once; 0 means 1
}

// Store is an open peer. Records count from 0 in commit order.
type Store interface {
	// Commit adds a group of records. In Durable mode they are on stable
	// storage when it returns. It may be called from many goroutines and does
	// not keep the slices.
	Commit(group [][]byte) error
	// Sync makes everything committed before it durable.
	Sync() error
	// Replay passes every record in order to visit; the slice is valid only
	// until visit returns. Nothing commits meanwhile.
	Replay(visit func(record []byte)) error
	// ReadAt returns record n, in buf if the peer reads into callers' memory.
	// It is valid until the next call; calls come one at a time.
	ReadAt(n uint64, buf []byte) ([]byte, error)
	// Len returns the number of records.
	Len() uint64
	// Close releases the store; what was synced stays.
	Close() error
}

// Kind says which side of the comparison a peer is on.
type Kind string

// The three sides.
const (
	Floor   Kind = "floor"   // bare system calls: nothing durable is cheaper
	Rival   Kind = "rival"   // another log or store
	Subject Kind = "subject" // Tidemark
)

// Sums says what stands between a peer's reader and a flipped bit.
type Sums string

// What a replay checks.
const (
	SumsNone     Sums = "none"     // stores no sum over record bytes
	SumsWritten  Sums = "written"  // stores sums but replays without checking all
	SumsVerified Sums = "verified" // every byte replayed was checked
)

// Reads says where a random read finds its record.
type Reads string

// Sources of a random read.
const (
	ReadsNone  Reads = ""           // no random reads
	ReadsFile  Reads = "file"       // positioned reads of the file
	ReadsMap   Reads = "memory map" // a mapping of the file: faults, no copies
	ReadsCache Reads = "cache"      // its own memory cache in front of the file
)

// Traits mark what a peer does less or more than a checksummed, atomic log.
type Traits struct {
	Sums    Sums   `json:"sums"`
	Atomic  bool   `json:"atomic"`  // a group takes effect together or not at all
	Index   bool   `json:"index"`   // maintains an index by key
	Reads   Reads  `json:"reads"`   // where random reads are served from
	Reopens bool   `json:"reopens"` // can be opened again and appended to
	Note    string `json:"note"`    // what else a reader of the figures must know
}

// Peer is one contestant.
type Peer struct {
	Name      string
	Kind      Kind
	Module    string   // module path of what is measured; empty for raw loops
	Workloads []string // the only ones it takes part in; nil means all
	Traits    Traits
	Light     bool                         // a thousand of them fit in one process
	Open      func(Options) (Store, error) // creates, or reopens what is in Dir

	// Verify checks every byte of a closed store that holds Options.Capacity
	// payload bytes, with so many workers if it can. Nil if it has no such tool.
	Verify func(o Options, workers int) error
	// Follow passes the records of a store that another process is writing to
	// visit, as they appear, until visit returns false. In Durable mode it
	// holds records back until power loss cannot take them. Nil if it cannot.
	Follow func(o Options, visit func(record []byte) bool) error
}

// TakesPart reports whether the peer runs in a workload such as "W3".
func (p Peer) TakesPart(workload string) bool {
	return len(p.Workloads) == 0 || slices.Contains(p.Workloads, workload)
}
