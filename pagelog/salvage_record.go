package pagelog

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// A salvaged record, of kind frame.KindSalvaged, is one record of another log
// that was found whole behind damage, as a payload: a header and the bytes as
// they were stored. Little-endian, in bytes:
//
//	offset  size  field
//	 0       4    version of this header, 1
//	 4       4    index of the record in its commit, from 0
//	 8      16    ID of the old log
//	24       8    old revision
//	32       8    digest of the old commit
//	40       4    old kind
//	44       4    old flags, the codec among them
//	48       4    old raw length, if compressed, else 0
//	52       4    length of the stored bytes in all
//	56       8    sum of the stored bytes in all
//	64       4    where in them this piece begins; 0 unless they did not fit
//	68       4    zero
//	72       …    the piece
//
// A record is cut into pieces only if this header makes it too large for the
// hard limits of the format; the pieces follow each other.
const salvagedHeader = 72

const salvagedVersion = 1

// Salvaged is a record that Salvage found behind damage.
type Salvaged struct {
	Log      cursor.LogID  // the damaged log
	Revision uint64        // its commit there
	Digest   cursor.Digest // the commit's digest there
	Index    uint32        // which record of the commit, from 0
	Kind     uint32        // its kind there
	Flags    uint32        // its flags there, the codec among them
	Raw      uint32        // its raw length there, if compressed
	Sum      uint64        // of all its stored bytes
	Length   uint32        // of all its stored bytes
	At       uint32        // where in them Stored begins
	Stored   []byte        // as they were stored, a part of what was decoded
}

// append adds the salvaged record's payload to b.
func (s *Salvaged) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, salvagedVersion)
	b = le.AppendUint32(b, s.Index)
	b = append(b, s.Log[:]...)
	b = le.AppendUint64(b, s.Revision)
	b = le.AppendUint64(b, uint64(s.Digest))
	for _, n := range []uint32{s.Kind, s.Flags, s.Raw, s.Length} {
		b = le.AppendUint32(b, n)
	}
	b = le.AppendUint64(b, s.Sum)
	b = le.AppendUint32(b, s.At)
	b = le.AppendUint32(b, 0)
	return append(b, s.Stored...)
}

// DecodeSalvaged reads the payload of a record of kind frame.KindSalvaged. The
// result's Stored is a part of data. Errors: ErrUnsupported for a later
// version, else frame.ErrField.
func DecodeSalvaged(data []byte) (Salvaged, error) {
	le := binary.LittleEndian
	if len(data) < salvagedHeader {
		return Salvaged{}, fmt.Errorf("salvaged record of %d bytes: %w", len(data), frame.ErrField)
	}
	if v := le.Uint32(data); v != salvagedVersion {
		return Salvaged{}, fmt.Errorf("%w: salvaged record of version %d", ErrUnsupported, v)
	}
	s := Salvaged{
		Index: le.Uint32(data[4:]), Log: cursor.LogID(data[8:24]),
		Revision: le.Uint64(data[24:]), Digest: cursor.Digest(le.Uint64(data[32:])),
		Kind: le.Uint32(data[40:]), Flags: le.Uint32(data[44:]), Raw: le.Uint32(data[48:]), Length: le.Uint32(data[52:]),
		Sum: le.Uint64(data[56:]), At: le.Uint32(data[64:]), Stored: data[salvagedHeader:],
	}
	if uint64(s.At)+uint64(len(s.Stored)) > uint64(s.Length) || le.Uint32(data[68:]) != 0 {
		return Salvaged{}, fmt.Errorf("salvaged record: %w", frame.ErrField)
	}
	return s, nil
}

// Record returns the record as it was in the old log. It must be whole: a piece
// is not. Its Payload decodes it.
func (s *Salvaged) Record() (frame.Record, error) {
	if uint64(len(s.Stored)) != uint64(s.Length) {
		return frame.Record{}, fmt.Errorf("piece of a record, %d of %d bytes: %w", len(s.Stored), s.Length, frame.ErrField)
	}
	return frame.Record{Kind: s.Kind, Flags: s.Flags, Raw: s.Raw, Sum: s.Sum, Data: s.Stored}, nil
}
