// Package checkpoint is the codec of what the engine keeps in derived groups:
// checkpoints, which say from where to resume, and the list of index runs. It
// knows bytes and no files. A checkpoint is never the only copy of a fact.
//
// A checkpoint is the first record, of kind frame.KindCheckpoint, of a derived
// group; the host's blob, if it gave one, is the second, of kind
// frame.KindBlob. It lists the runs of the keyed index, whose pieces are
// records of kind frame.KindIndexRun in derived groups before it (run.go).
// Decoding an encoded checkpoint and encoding it again gives the same bytes;
// anything else is refused.
package checkpoint

import (
	"encoding/binary"
	"math"

	"github.com/tidemark-log/tidemark/frame"
)

// Version is the version of the record this package writes. Readers skip the
// checkpoints of versions they do not know.
const Version = 1

// MaxBlob bounds the host's blob in bytes.
const MaxBlob = 16 << 20

// Size is the length in bytes of the record's fixed part; the runs follow.
const Size = 192

// Byte layout, little-endian. The comment begins with the field's size.
const (
	cpVersion    = 0   // 4 version of the record
	cpRuns       = 4   // 4 index runs listed behind the fixed part
	cpResume     = 8   // 24 resume point: raw end before this group, revision, digest
	cpPrevious   = 32  // 24 checkpoint before this one: start, revision, digest of its group
	cpBlob       = 56  // 24 host's last blob: start of its group; revision and digest of the commit whose state it is
	cpFloor      = 80  // 24 retention floor, as in the slot
	cpFence      = 104 // 8 fencing token, as in the slot
	cpRun        = 112 // 32 hash of the run, as in the slot
	cpGeneration = 144 // 8 file generation, as in the slot
	cpFeatures   = 152 // 24 features turned on after creation, as in the slot
	cpSince      = 176 // 8 keys of commits up to this revision may be missing from the index
	cpNextRun    = 184 // 8 number of the next run
)

// Byte layout of a run in the list.
const (
	runNumber   = 0  // 8 number of the run
	runLevel    = 8  // 1 level
	runRole     = 9  // 1 role: 0 main, 1 incoming, 2 building
	runReserved = 10 // 2 zero
	runExtents  = 12 // 4 extents that follow
	runEntries  = 16 // 8 entries
	runLast     = 24 // 8 first eight bytes of the last hash, as a number
	runSize     = 32
)

// Byte layout of an extent in the list.
const (
	extOffset   = 0  // 8 start of the group that holds the piece
	extFirst    = 8  // 8 first eight bytes of its first hash, as a number
	extBlocks   = 16 // 4 blocks
	extReserved = 20 // 4 zero
	extentSize  = 24
)

// Checkpoint repeats what the slots hold, and says where history can be taken
// up.
type Checkpoint struct {
	Resume     frame.Place // raw end, revision and digest of the history before the group
	Previous   frame.Place // start, revision and digest of the checkpoint group before; zero for none
	Blob       frame.Place // start of the group with the host's last blob, and the commit whose state it is; zero for none
	Floor      frame.Place // retention floor
	Fence      uint64
	Run        [32]byte
	Generation uint64
	Features   frame.Features
	Index      Index
}

// Index is the keyed index as a checkpoint knows it: every key of the commits
// after Since, up to the checkpoint's revision, is in a run.
type Index struct {
	Since   uint64
	NextRun uint64
	Runs    []Run // by level; of one level incoming before main, the newest first
}

// Encode returns the record's bytes.
func (c *Checkpoint) Encode() []byte {
	b := make([]byte, Size, Size+c.Index.size())
	le := binary.LittleEndian
	le.PutUint32(b[cpVersion:], Version)
	putPlace(b[cpResume:], c.Resume)
	putPlace(b[cpPrevious:], c.Previous)
	putPlace(b[cpBlob:], c.Blob)
	putPlace(b[cpFloor:], c.Floor)
	le.PutUint64(b[cpFence:], c.Fence)
	copy(b[cpRun:], c.Run[:])
	le.PutUint64(b[cpGeneration:], c.Generation)
	le.PutUint64(b[cpFeatures:], c.Features.Compat)
	le.PutUint64(b[cpFeatures+8:], c.Features.ReadOnly)
	le.PutUint64(b[cpFeatures+16:], c.Features.Incompat)
	le.PutUint32(b[cpRuns:], uint32(len(c.Index.Runs)))
	le.PutUint64(b[cpSince:], c.Index.Since)
	le.PutUint64(b[cpNextRun:], c.Index.NextRun)
	for i := range c.Index.Runs {
		b = c.Index.Runs[i].append(b)
	}
	return b
}

// size returns the bytes that the list of runs takes.
func (x *Index) size() int {
	n := 0
	for i := range x.Runs {
		n += runSize + extentSize*len(x.Runs[i].Extents)
	}
	return n
}

func (r *Run) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, r.Number)
	b = append(b, r.Level, byte(r.Role), 0, 0)
	b = le.AppendUint32(b, uint32(len(r.Extents)))
	b = le.AppendUint64(b, r.Entries)
	b = le.AppendUint64(b, r.Last)
	for _, x := range r.Extents {
		b = le.AppendUint64(b, uint64(x.Offset))
		b = le.AppendUint64(b, x.First)
		b = le.AppendUint64(b, uint64(x.Blocks))
	}
	return b
}

// Decode reads a record. Errors: frame.ErrUnsupported for another version,
// frame.ErrField or frame.ErrPadding for what cannot be.
func Decode(b []byte) (Checkpoint, error) {
	if len(b) < 4 {
		return Checkpoint{}, frame.ErrField
	}
	le := binary.LittleEndian
	if le.Uint32(b[cpVersion:]) != Version {
		return Checkpoint{}, frame.ErrUnsupported
	}
	if len(b) < Size {
		return Checkpoint{}, frame.ErrField
	}
	c := Checkpoint{
		Resume: place(b[cpResume:]), Previous: place(b[cpPrevious:]), Blob: place(b[cpBlob:]), Floor: place(b[cpFloor:]),
		Fence: le.Uint64(b[cpFence:]), Run: [32]byte(b[cpRun:cpGeneration]), Generation: le.Uint64(b[cpGeneration:]),
		Features: frame.Features{
			Compat: le.Uint64(b[cpFeatures:]), ReadOnly: le.Uint64(b[cpFeatures+8:]), Incompat: le.Uint64(b[cpFeatures+16:]),
		},
	}
	for _, p := range []frame.Place{c.Resume, c.Previous, c.Blob, c.Floor} {
		if p.Offset < 0 {
			return Checkpoint{}, frame.ErrField
		}
	}
	c.Index.Since, c.Index.NextRun = le.Uint64(b[cpSince:]), le.Uint64(b[cpNextRun:])
	if c.Index.Since > math.MaxInt64 || c.Index.NextRun > MaxRuns {
		return Checkpoint{}, frame.ErrField
	}
	return c, c.Index.decode(b[Size:], le.Uint32(b[cpRuns:]))
}

// decode reads the list of n runs, which is all of b.
func (x *Index) decode(b []byte, n uint32) error {
	for range n {
		var r Run
		rest, err := r.decode(b)
		if err != nil {
			return err
		}
		if r.Number >= x.NextRun {
			return frame.ErrField
		}
		x.Runs, b = append(x.Runs, r), rest
	}
	if len(b) != 0 {
		return frame.ErrField
	}
	return nil
}

// decode reads one run and returns what follows it.
func (r *Run) decode(b []byte) (rest []byte, err error) {
	le := binary.LittleEndian
	if len(b) < runSize {
		return nil, frame.ErrField
	}
	n := int64(le.Uint32(b[runExtents:]))
	*r = Run{
		Number: le.Uint64(b[runNumber:]), Level: b[runLevel], Role: Role(b[runRole]),
		Entries: le.Uint64(b[runEntries:]), Last: le.Uint64(b[runLast:]),
	}
	if !frame.IsZero(b[runReserved:runExtents]) {
		return nil, frame.ErrPadding
	}
	if b = b[runSize:]; r.Level > MaxLevel || r.Role >= roles || n == 0 || n*extentSize > int64(len(b)) {
		return nil, frame.ErrField
	}
	r.Extents = make([]Extent, n)
	blocks, first := uint64(0), uint64(0)
	for i := range r.Extents {
		x := &r.Extents[i]
		*x = Extent{int64(le.Uint64(b[extOffset:])), le.Uint64(b[extFirst:]), le.Uint32(b[extBlocks:])}
		if !frame.IsZero(b[extReserved:extentSize]) {
			return nil, frame.ErrPadding
		}
		if x.Offset <= 0 || x.First < first || x.Blocks == 0 || x.Blocks > MaxPieceBlocks {
			return nil, frame.ErrField
		}
		blocks, first = blocks+uint64(x.Blocks), x.First
		b = b[extentSize:]
	}
	if r.Last < first || r.Entries > blocks*BlockEntries || r.Entries <= (blocks-1)*BlockEntries {
		return nil, frame.ErrField
	}
	return b, nil
}

func putPlace(b []byte, p frame.Place) {
	binary.LittleEndian.PutUint64(b, uint64(p.Offset))
	binary.LittleEndian.PutUint64(b[8:], p.Revision)
	binary.LittleEndian.PutUint64(b[16:], p.Digest)
}

func place(b []byte) frame.Place {
	le := binary.LittleEndian
	return frame.Place{Offset: int64(le.Uint64(b)), Revision: le.Uint64(b[8:]), Digest: le.Uint64(b[16:])}
}
