package checkpoint

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/tidemark-log/tidemark/frame"
)

// Index runs. A run is a sorted list of entries, cut into blocks of one size,
// each under a sum of its own; a piece is up to MaxPieceBlocks blocks that were
// written as one record of kind frame.KindIndexRun, in a derived group. The
// checkpoint lists the pieces of each run as its extents.
//
// Hashes are uniform, so where in an extent a hash lies can be computed. A
// piece is cut so that this is right to within one block: reading at most two
// blocks of a run finds an entry, or proves that it is not there, whatever the
// size of the run.

// Sizes and bounds of index runs.
const (
	BlockSize      = 4096 // bytes
	BlockEntries   = 119  // entries of a full block
	MaxPieceBlocks = 31
	PieceHeader    = 24   // bytes before the first block of a piece
	MaxNamespace   = 255  // bytes
	MaxKey         = 1024 // bytes
	MaxLevel       = 15
	MaxRuns        = math.MaxInt64 // runs ever written in a log: more than there can be, rebuilding takes 65,536 numbers

	entrySize = 34
	keyHeader = 8
)

// KindKey is the kind of the record that holds a key.
const KindKey = frame.KindIndexKey

// Byte layout of a piece's header.
const (
	pieceVersion = 0  // 4 version of the record, as the checkpoint's
	pieceBlocks  = 4  // 4 blocks that follow
	pieceRun     = 8  // 8 number of the run
	pieceFirst   = 16 // 8 number of the first block in the run
)

// Byte layout of a block.
const (
	blockNext     = 0    // 8 first eight bytes of the next block's first hash, as a number; all ones: there is none
	blockCount    = 8    // 2 entries
	blockFlags    = 10   // 2 bit 0: the block before ends with the hash this one begins with
	blockReserved = 12   // 4 zero
	blockEntries  = 16   // 4046 entries, 119 of 34 bytes
	blockUnused   = 4062 // 26 zero
	blockSum      = 4088 // 8 sum of all before it, seeded with run number * 2^32 + block number
)

// Byte layout of an entry.
const (
	entryHash     = 0  // 15 first bytes of the hash of the key
	entryRecord   = 15 // 3 record of the commit
	entryRevision = 18 // 8 revision of the commit
	entryOffset   = 26 // 8 where the commit's group started when it was written, a hint
)

// Byte layout of a key, the record of kind frame.KindIndexKey in a commit.
const (
	keyRecord    = 0 // 4 record of this commit that it points to
	keyNamespace = 4 // 2 bytes of the namespace
	keyReserved  = 6 // 2 zero
)

// Hash is the first 120 bits of the SHA-256 over the log's index key, the
// length of the namespace, the namespace and the key.
type Hash [15]byte

// HashKey returns the hash of a key in a log.
func HashKey(indexKey [16]byte, namespace, key []byte) Hash {
	var stack [16 + 2 + MaxNamespace + 256]byte
	b := append(stack[:0], indexKey[:]...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(namespace)))
	b = append(append(b, namespace...), key...)
	sum := sha256.Sum256(b)
	return Hash(sum[:len(Hash{})])
}

// Prefix returns the first eight bytes as a number that sorts as the hash does.
func (h Hash) Prefix() uint64 { return binary.BigEndian.Uint64(h[:]) }

// Key is what a key record says.
type Key struct {
	Record    uint32
	Namespace []byte
	Key       []byte
}

// AppendKey appends the payload of a key record. The lengths are the caller's
// to check.
func AppendKey(b []byte, k Key) []byte {
	b = binary.LittleEndian.AppendUint32(b, k.Record)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(k.Namespace)))
	b = append(b, 0, 0)
	return append(append(b, k.Namespace...), k.Key...)
}

// DecodeKey reads the payload of a key record. The slices are parts of b.
// Errors: frame.ErrField, frame.ErrPadding.
func DecodeKey(b []byte) (Key, error) {
	if len(b) < keyHeader {
		return Key{}, frame.ErrField
	}
	n := int(binary.LittleEndian.Uint16(b[keyNamespace:]))
	if n > MaxNamespace || len(b) <= keyHeader+n || len(b) > keyHeader+n+MaxKey {
		return Key{}, frame.ErrField
	}
	if !frame.IsZero(b[keyReserved:keyHeader]) {
		return Key{}, frame.ErrPadding
	}
	return Key{binary.LittleEndian.Uint32(b[keyRecord:]), b[keyHeader : keyHeader+n : keyHeader+n], b[keyHeader+n:]}, nil
}

// Entry leads from the hash of a key to a record.
type Entry struct {
	Hash     Hash
	Record   uint32 // of the commit
	Revision uint64
	Offset   int64 // where the commit's group started: a hint
}

// Compare orders entries by hash, and of one hash the newest first.
func (e *Entry) Compare(o *Entry) int {
	if c := cmp.Compare(e.Hash.Prefix(), o.Hash.Prefix()); c != 0 {
		return c
	}
	return cmp.Or(bytes.Compare(e.Hash[8:], o.Hash[8:]), cmp.Compare(o.Revision, e.Revision), cmp.Compare(o.Record, e.Record))
}

func (e *Entry) put(b []byte) {
	copy(b[entryHash:], e.Hash[:])
	b[entryRecord], b[entryRecord+1], b[entryRecord+2] = byte(e.Record), byte(e.Record>>8), byte(e.Record>>16)
	binary.LittleEndian.PutUint64(b[entryRevision:], e.Revision)
	binary.LittleEndian.PutUint64(b[entryOffset:], uint64(e.Offset))
}

func entryAt(b []byte) Entry {
	return Entry{
		Hash:     Hash(b[entryHash:entryRecord]),
		Record:   uint32(b[entryRecord]) | uint32(b[entryRecord+1])<<8 | uint32(b[entryRecord+2])<<16,
		Revision: binary.LittleEndian.Uint64(b[entryRevision:]),
		Offset:   int64(binary.LittleEndian.Uint64(b[entryOffset:])),
	}
}

// Block is a checked block of a run. It is a view of the bytes it was decoded
// from.
type Block struct {
	b         []byte
	Len       int    // entries, at least one
	Next      uint64 // prefix of the next block's first hash; all ones: there is none
	Continues bool   // the block before ends with the hash this one begins with
}

// DecodeBlock reads block number of a run. Errors: frame.ErrSum; under a good
// sum frame.ErrField or frame.ErrPadding for what cannot be.
func DecodeBlock(b []byte, run uint64, number uint32) (Block, error) {
	if len(b) != BlockSize {
		return Block{}, frame.ErrField
	}
	le := binary.LittleEndian
	if le.Uint64(b[blockSum:]) != xxh3.HashSeed(b[:blockSum], run<<32+uint64(number)) {
		return Block{}, frame.ErrSum
	}
	flags := le.Uint16(b[blockFlags:])
	k := Block{b: b, Len: int(le.Uint16(b[blockCount:])), Next: le.Uint64(b[blockNext:]), Continues: flags == 1}
	if k.Len < 1 || k.Len > BlockEntries || flags > 1 {
		return Block{}, frame.ErrField
	}
	if !frame.IsZero(b[blockReserved:blockEntries]) || !frame.IsZero(b[blockEntries+k.Len*entrySize:blockSum]) {
		return Block{}, frame.ErrPadding
	}
	last := k.At(0)
	for i := range k.Len {
		e := k.At(i)
		if last.Compare(&e) > 0 || e.Revision == 0 || e.Revision > math.MaxInt64 || e.Offset < 0 {
			return Block{}, frame.ErrField
		}
		last = e
	}
	if k.Next < last.Hash.Prefix() {
		return Block{}, frame.ErrField
	}
	return k, nil
}

// At returns entry i.
func (k *Block) At(i int) Entry { return entryAt(k.b[blockEntries+i*entrySize:]) }

// Search returns the first entry whose hash is not below h; Len if there is
// none.
func (k *Block) Search(h Hash) int {
	lo, hi := 0, k.Len
	for lo < hi {
		mid := (lo + hi) / 2
		at := blockEntries + mid*entrySize
		if bytes.Compare(k.b[at:at+len(h)], h[:]) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Run is a run as a checkpoint lists it. All its blocks are full but the last.
type Run struct {
	Number  uint64 // never used twice in a log
	Level   uint8
	Role    Role
	Entries uint64
	Last    uint64 // prefix of the last hash
	Extents []Extent
}

// Role is what a run is to its level.
type Role uint8

// The roles of runs.
const (
	Main     Role = iota // what the level holds; on level 0, one of several
	Incoming             // to be merged into the level's main run; newer than that
	Building             // what of the merged run is written; not yet looked at
	roles
)

// Extent is a piece of a run.
type Extent struct {
	Offset int64  // start of the group that holds it
	First  uint64 // prefix of its first hash
	Blocks uint32
}

// Blocks returns the number of blocks of the run.
func (r *Run) Blocks() uint32 { return uint32((r.Entries + BlockEntries - 1) / BlockEntries) }

// Guess returns the block of extent i, which begins with the run's block
// number first, where a hash with this prefix should be: in it, or in the one
// before or behind it.
func (r *Run) Guess(i int, first uint32, prefix uint64) uint32 {
	end := r.Last
	if i+1 < len(r.Extents) {
		end = r.Extents[i+1].First
	}
	x := &r.Extents[i]
	n := min(uint64(x.Blocks)*BlockEntries, r.Entries-uint64(first)*BlockEntries)
	return guess(x.First, end, n, prefix)
}

// guess interpolates: n entries lie from first up to end.
func guess(first, end, n, prefix uint64) uint32 {
	if prefix <= first {
		return 0
	}
	if prefix >= end {
		return uint32((n - 1) / BlockEntries)
	}
	hi, lo := bits.Mul64(prefix-first, n)
	rank, _ := bits.Div64(hi, lo, end-first) // hi < end - first, for n < 2^64 and prefix < end
	return uint32(min(rank, n-1) / BlockEntries)
}

// Piece cuts the next piece off entries and adds it to the run as an extent
// without an offset, which Place fills in. It returns the payload of its
// record, appended to dst, and how many entries are in it: none if there are
// not enough for a whole block. entries carry on from after, the last entry of
// the run so far; done says that they are the last ones.
func (r *Run) Piece(dst []byte, after *Entry, entries []Entry, done bool) (payload []byte, used int) {
	blocks := (len(entries) - 1) / BlockEntries
	if done {
		blocks = (len(entries) + BlockEntries - 1) / BlockEntries
	}
	if blocks = min(blocks, MaxPieceBlocks); blocks == 0 {
		return dst, 0
	}
	for !close(entries, blocks) {
		blocks = max(blocks/2, 1)
	}
	used = min(blocks*BlockEntries, len(entries))
	first := r.Blocks()
	le := binary.LittleEndian
	var head [PieceHeader]byte
	le.PutUint32(head[pieceVersion:], Version)
	le.PutUint32(head[pieceBlocks:], uint32(blocks))
	le.PutUint64(head[pieceRun:], r.Number)
	le.PutUint64(head[pieceFirst:], uint64(first))
	dst = append(dst, head[:]...)
	for i := range blocks {
		dst = r.appendBlock(dst, first+uint32(i), after, entries[i*BlockEntries:])
		after = &entries[min((i+1)*BlockEntries, used)-1]
	}
	r.Extents = append(r.Extents, Extent{First: entries[0].Hash.Prefix(), Blocks: uint32(blocks)})
	r.Entries += uint64(used)
	r.Last = entries[used-1].Hash.Prefix()
	return dst, used
}

// Place says where the last piece that was cut lies.
func (r *Run) Place(offset int64) { r.Extents[len(r.Extents)-1].Offset = offset }

// close reports whether every hash is found within one block of where guess
// says it is, if a piece ends behind blocks.
func close(entries []Entry, blocks int) bool {
	if blocks <= 2 {
		return true
	}
	n := min(blocks*BlockEntries, len(entries))
	first, end := entries[0].Hash.Prefix(), entries[min(n, len(entries)-1)].Hash.Prefix()
	for i := range blocks {
		before, last := &entries[max(i*BlockEntries-1, 0)], &entries[min((i+1)*BlockEntries, n)-1]
		low := guess(first, end, uint64(n), before.Hash.Prefix())
		high := guess(first, end, uint64(n), last.Hash.Prefix())
		if int(low) < i-1 || int(high) > i+1 {
			return false
		}
	}
	return true
}

// appendBlock appends one block with the first of the entries.
func (r *Run) appendBlock(dst []byte, number uint32, after *Entry, entries []Entry) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, BlockSize)...)
	b, le := dst[at:], binary.LittleEndian
	n := min(len(entries), BlockEntries)
	next := uint64(math.MaxUint64)
	if n < len(entries) {
		next = entries[n].Hash.Prefix()
	}
	le.PutUint64(b[blockNext:], next)
	le.PutUint16(b[blockCount:], uint16(n))
	if number > 0 && after.Hash == entries[0].Hash {
		b[blockFlags] = 1
	}
	for i := range n {
		entries[i].put(b[blockEntries+i*entrySize:])
	}
	le.PutUint64(b[blockSum:], xxh3.HashSeed(b[:blockSum], r.Number<<32+uint64(number)))
	return dst
}
