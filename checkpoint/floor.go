package checkpoint

import (
	"encoding/binary"
	"math"

	"github.com/tidemark-log/tidemark/frame"
)

// Floor is the payload of the one record, of kind frame.KindFloor, of the
// derived group that moves the retention floor: commits up to its revision are
// dropped. It repeats what the slots hold, for the case that both are lost.
type Floor struct {
	Place      frame.Place // raw end, revision and digest of the last dropped commit
	Generation uint64      // file generation, as in the slot
	Features   frame.Features
}

// FloorSize is the length of the record in bytes.
const FloorSize = 64

// Byte layout, little-endian. The comment begins with the field's size.
const (
	floorVersion    = 0  // 4 version of the record
	floorReserved   = 4  // 4 zero
	floorPlace      = 8  // 24 retention floor: raw end, revision and digest of the last dropped commit
	floorGeneration = 32 // 8 file generation, as in the slot
	floorFeatures   = 40 // 24 features turned on after creation, as in the slot
)

// Encode returns the record's bytes.
func (f *Floor) Encode() []byte {
	b := make([]byte, FloorSize)
	le := binary.LittleEndian
	le.PutUint32(b[floorVersion:], Version)
	putPlace(b[floorPlace:], f.Place)
	le.PutUint64(b[floorGeneration:], f.Generation)
	le.PutUint64(b[floorFeatures:], f.Features.Compat)
	le.PutUint64(b[floorFeatures+8:], f.Features.ReadOnly)
	le.PutUint64(b[floorFeatures+16:], f.Features.Incompat)
	return b
}

// DecodeFloor reads a record. Errors: frame.ErrUnsupported for another version,
// frame.ErrField or frame.ErrPadding for what cannot be.
func DecodeFloor(b []byte) (Floor, error) {
	if len(b) < floorReserved {
		return Floor{}, frame.ErrField
	}
	le := binary.LittleEndian
	if le.Uint32(b) != Version {
		return Floor{}, frame.ErrUnsupported
	}
	if len(b) != FloorSize {
		return Floor{}, frame.ErrField
	}
	if le.Uint32(b[floorReserved:]) != 0 {
		return Floor{}, frame.ErrPadding
	}
	f := Floor{
		Place: place(b[floorPlace:]), Generation: le.Uint64(b[floorGeneration:]),
		Features: frame.Features{
			Compat: le.Uint64(b[floorFeatures:]), ReadOnly: le.Uint64(b[floorFeatures+8:]), Incompat: le.Uint64(b[floorFeatures+16:]),
		},
	}
	if f.Place.Offset <= 0 || f.Place.Offset%8 != 0 || f.Place.Revision > math.MaxInt64 {
		return Floor{}, frame.ErrField
	}
	return f, nil
}
