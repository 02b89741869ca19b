package frame

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// Identity is what a log is, written once at its creation.
type Identity struct {
	Features   Features
	PageSize   uint32
	Align      uint32
	LogID      [16]byte
	Salt       uint64 // secret of the file; never shown
	App        uint64 // the host's own mark
	MaxRecord  uint64 // bytes of a record
	MaxGroup   uint64 // bytes of a group's body
	MaxRecords uint32 // records of a group
	MaxSize    uint64 // bytes of the file; 0: none
	IndexKey   [16]byte
	Base       Boundary // what the log begins after; zero for nothing
	Created    int64    // nanoseconds since 1970, advisory
	Lineage    []Ancestor
}

// Boundary names a commit of a log.
type Boundary struct {
	LogID    [16]byte
	Revision uint64
	Digest   uint64
}

// Ancestor is a log that this one was forked from.
type Ancestor struct {
	LogID    [16]byte
	Salt     uint64
	End      int64 // what starts below this offset is the ancestor's
	Revision uint64
	Digest   uint64
}

// Features are three sets of bits: a reader that does not know a compatible
// one goes on, a read-only-compatible one stops writing, an incompatible one
// stops everything.
type Features struct{ Compat, ReadOnly, Incompat uint64 }

// FeatureKeys is a compatible feature: commits may have records of kind
// KindIndexKey. A slot or checkpoint without it says that no commit up to there
// has.
const FeatureKeys = 1

// Features of format version 1.
var known = Features{Compat: FeatureKeys}

// UnknownIncompat returns the incompatible features this version lacks.
func (f Features) UnknownIncompat() uint64 { return f.Incompat &^ known.Incompat }

// UnknownReadOnly returns the features that forbid this version to write.
func (f Features) UnknownReadOnly() uint64 { return f.ReadOnly &^ known.ReadOnly }

// Encode returns the identity's bytes, one copy.
func (id *Identity) Encode() []byte {
	b := make([]byte, IdentitySize)
	le := binary.LittleEndian
	copy(b[idMagic:], identityMagic)
	le.PutUint32(b[idVersion:], Version)
	le.PutUint32(b[idSize:], IdentitySize)
	id.Features.put(b[idCompat:])
	le.PutUint32(b[idPageSize:], id.PageSize)
	le.PutUint32(b[idAlign:], id.Align)
	copy(b[idLogID:], id.LogID[:])
	le.PutUint64(b[idSalt:], id.Salt)
	le.PutUint64(b[idApp:], id.App)
	le.PutUint64(b[idMaxRecord:], id.MaxRecord)
	le.PutUint64(b[idMaxGroup:], id.MaxGroup)
	le.PutUint32(b[idMaxRecords:], id.MaxRecords)
	le.PutUint32(b[idLineage:], uint32(len(id.Lineage)))
	le.PutUint64(b[idMaxSize:], id.MaxSize)
	copy(b[idIndexKey:], id.IndexKey[:])
	copy(b[idBaseLog:], id.Base.LogID[:])
	le.PutUint64(b[idBaseRev:], id.Base.Revision)
	le.PutUint64(b[idBaseDigest:], id.Base.Digest)
	le.PutUint64(b[idCreated:], uint64(id.Created))
	for i, a := range id.Lineage {
		a.put(b[idEntries+i*lineageSize:])
	}
	le.PutUint64(b[idSum:], xxh3.Hash(b[:idSum]))
	return b
}

// DecodeIdentity reads one copy of an identity. Errors: ErrMark if this is no
// identity, ErrSum; under a good sum ErrUnsupported for a later version,
// ErrField or ErrPadding for what cannot be. An identity with an unknown
// incompatible feature is returned for its Features: its reserved bytes may be
// in use, and a field that cannot be is ErrUnsupported.
func DecodeIdentity(b []byte) (Identity, error) {
	if len(b) < IdentitySize || string(b[idMagic:idVersion]) != identityMagic {
		return Identity{}, ErrMark
	}
	b = b[:IdentitySize]
	le := binary.LittleEndian
	if le.Uint64(b[idSum:]) != xxh3.Hash(b[:idSum]) {
		return Identity{}, ErrSum
	}
	if le.Uint32(b[idVersion:]) != Version {
		return Identity{}, ErrUnsupported
	}
	id := Identity{
		Features: features(b[idCompat:]), PageSize: le.Uint32(b[idPageSize:]), Align: le.Uint32(b[idAlign:]),
		LogID: [16]byte(b[idLogID:idSalt]), Salt: le.Uint64(b[idSalt:]), App: le.Uint64(b[idApp:]),
		MaxRecord: le.Uint64(b[idMaxRecord:]), MaxGroup: le.Uint64(b[idMaxGroup:]),
		MaxRecords: le.Uint32(b[idMaxRecords:]), MaxSize: le.Uint64(b[idMaxSize:]),
		IndexKey: [16]byte(b[idIndexKey:idBaseLog]),
		Base: Boundary{
			LogID: [16]byte(b[idBaseLog:idBaseRev]), Revision: le.Uint64(b[idBaseRev:]), Digest: le.Uint64(b[idBaseDigest:]),
		},
		Created: int64(le.Uint64(b[idCreated:])),
	}
	later := id.Features.UnknownIncompat() != 0
	n := le.Uint32(b[idLineage:])
	for i := range int(min(n, MaxLineage)) {
		id.Lineage = append(id.Lineage, ancestor(b[idEntries+i*lineageSize:]))
	}
	unused := b[idEntries+len(id.Lineage)*lineageSize : idSum]
	if n > MaxLineage || le.Uint32(b[idSize:]) != IdentitySize || id.Validate() != nil {
		return Identity{Features: id.Features}, unknownOr(later, ErrField)
	}
	if !later && (!IsZero(b[idReserved:idEntries]) || !IsZero(unused)) {
		return Identity{}, ErrPadding
	}
	return id, nil
}

// unknownOr returns err, or ErrUnsupported where a later version may have given
// the field a new meaning.
func unknownOr(later bool, err error) error {
	if later {
		return ErrUnsupported
	}
	return err
}

// Validate reports ErrField for an identity that no log can have.
func (id *Identity) Validate() error {
	page := uint64(id.PageSize)
	ok := bits.OnesCount64(page) == 1 && page >= MinPageSize && page <= MaxPageSize &&
		(id.Align == 8 || id.Align == 512 || id.Align == 4096) &&
		validSalt(id.Salt) && id.LogID != [16]byte{} &&
		id.MaxRecord >= 1 && id.MaxRecord <= MaxRecordBytes &&
		id.MaxGroup >= RecordHeaderSize+8 && id.MaxGroup <= MaxGroupBytes &&
		id.MaxRecords >= 1 && id.MaxRecords <= MaxGroupRecords &&
		id.MaxSize <= math.MaxInt64 && id.Base.Revision < math.MaxInt64 &&
		(id.Base.LogID != [16]byte{} || id.Base == Boundary{}) &&
		len(id.Lineage) <= MaxLineage
	if !ok || !id.validLineage() {
		return ErrField
	}
	return nil
}

// validLineage checks the ancestors of an identity whose own fields are sound.
func (id *Identity) validLineage() bool {
	g, end := id.Geometry(), int64(0)
	for _, a := range id.Lineage {
		if a.End <= end || !g.MayEnd(a.End) || !validSalt(a.Salt) || a.LogID == [16]byte{} || a.Revision > math.MaxInt64 {
			return false
		}
		end = a.End
	}
	return true
}

// validSalt refuses the salts whose groups zero bytes could be.
func validSalt(salt uint64) bool { return salt != 0 && Mark(salt) != 0 }

func (f Features) put(b []byte) {
	binary.LittleEndian.PutUint64(b, f.Compat)
	binary.LittleEndian.PutUint64(b[8:], f.ReadOnly)
	binary.LittleEndian.PutUint64(b[16:], f.Incompat)
}

func features(b []byte) Features {
	le := binary.LittleEndian
	return Features{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])}
}

func (a Ancestor) put(b []byte) {
	copy(b[linLogID:], a.LogID[:])
	binary.LittleEndian.PutUint64(b[linSalt:], a.Salt)
	binary.LittleEndian.PutUint64(b[linEnd:], uint64(a.End))
	binary.LittleEndian.PutUint64(b[linRevision:], a.Revision)
	binary.LittleEndian.PutUint64(b[linDigest:], a.Digest)
}

func ancestor(b []byte) Ancestor {
	le := binary.LittleEndian
	return Ancestor{
		LogID: [16]byte(b[linLogID:linSalt]), Salt: le.Uint64(b[linSalt:]), End: int64(le.Uint64(b[linEnd:])),
		Revision: le.Uint64(b[linRevision:]), Digest: le.Uint64(b[linDigest:]),
	}
}
