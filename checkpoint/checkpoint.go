// Package checkpoint is the codec of what the engine keeps in derived groups:
// checkpoints, which say from where to resume, and the list of index runs. It
// knows bytes and no files. A checkpoint is never the only copy of a fact.
//
// A checkpoint is the first record, of kind frame.KindCheckpoint, of a derived
// group; the host's blob, if it gave one, is the second, of kind
// frame.KindBlob. Decoding an encoded checkpoint and encoding it again gives
// the same bytes; anything else is refused.
package checkpoint

import (
	"encoding/binary"

	"github.com/tidemark-log/tidemark/frame"
)

// Version is the version of the record this package writes. Readers skip the
// checkpoints of versions they do not know.
const Version = 1

// MaxBlob bounds the host's blob in bytes.
const MaxBlob = 16 << 20

// Size is the length of the record in bytes.
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
	cpReserved   = 176 // 16 zero
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
}

// Encode returns the record's bytes.
func (c *Checkpoint) Encode() []byte {
	b := make([]byte, Size)
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
	if len(b) != Size || le.Uint32(b[cpRuns:]) != 0 {
		return Checkpoint{}, frame.ErrField
	}
	if !frame.IsZero(b[cpReserved:Size]) {
		return Checkpoint{}, frame.ErrPadding
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
	return c, nil
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
