package cursor

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// ViewID is the identity of a view: of what a reader asked to be shown. The
// zero ViewID is the view of everything. Identities travel in tokens, so how
// they are derived is part of the token format; see [ViewOf].
type ViewID uint64

// String returns 16 lower-case hexadecimal digits.
func (v ViewID) String() string { return hex64(uint64(v)) }

// viewDomain keeps a view's hash apart from any other use of SHA-256, and is
// where a change of the derivation would show.
const viewDomain = "tidemark view 1\x00"

// ViewOf returns the identity of the view that shows records of the given
// kinds in the given namespace. No kinds means every kind and the empty
// namespace every namespace; with neither, the view is that of everything and
// its identity is zero. Order and repetition of kinds do not matter, and kinds
// is neither changed nor kept.
//
// The identity is the first eight bytes, read big-endian, of the SHA-256 of
//
//	"tidemark view 1" and a zero byte
//	the number of different kinds, 4 bytes little-endian
//	each kind, ascending, 4 bytes little-endian
//	the namespace, to the end
//
// with the top bit set, so that no other view has the identity of everything.
func ViewOf(kinds []uint32, namespace string) ViewID {
	if len(kinds) == 0 && namespace == "" {
		return 0
	}
	set := slices.Clone(kinds)
	slices.Sort(set)
	set = slices.Compact(set)

	text := binary.LittleEndian.AppendUint32([]byte(viewDomain), uint32(len(set)))
	for _, kind := range set {
		text = binary.LittleEndian.AppendUint32(text, kind)
	}
	sum := sha256.Sum256(append(text, namespace...))
	return ViewID(binary.BigEndian.Uint64(sum[:]) | 1<<63)
}
