// Package frame is Tidemark's wire format: the codecs of the identity, the
// slots, pages, groups and records, and the arithmetic of where they lie. It
// knows bytes and no files, and it does no I/O.
//
//	offset 0                                                header area's end
//	| identity | slot 0 | slot 1 | identity | zero … || page | page | page …
//
//	page:   | page header | groups, running on over page headers …      |
//	group:  | group header | record | record | …                       |
//	record: | record header | payload | zeros to 8                     |
//
// A group header never crosses a page boundary; everything else runs on behind
// the next page header. Writing is done by Builder, reading by the Decode
// functions and Geometry.Gather; docs/FORMAT.md is the specification.
//
// Rules that the rest of the engine leans on:
//
//   - Zero bytes decode as nothing, anywhere.
//   - A length is used only after the sum that covers it held.
//   - Nothing that depends on place or time enters a digest.
//   - Encoding a decoded structure gives the same bytes; anything else is
//     refused.
//
// Errors are the sentinels below, bare: only the engine knows file and offset.
package frame

import "errors"

// What can be wrong with bytes.
var (
	// ErrMark means the bytes do not begin as this structure does.
	ErrMark = errors.New("no such structure here")
	// ErrSum means the bytes do not agree with their sum.
	ErrSum = errors.New("sum does not match")
	// ErrField means a field holds a value it cannot have, under a good sum.
	ErrField = errors.New("field out of range")
	// ErrPadding means bytes that must be zero are not.
	ErrPadding = errors.New("padding is not zero")
	// ErrDigest means a group's records do not give the digest in its header.
	ErrDigest = errors.New("digest does not match")
	// ErrUnsupported means a good sum over something this version does not
	// know, a later format version, a flag, a feature, or that this machine
	// cannot address. It is never damage.
	ErrUnsupported = errors.New("written by a newer version")
)

// FlagDerived marks a group that adds no history: a checkpoint, an index run,
// a floor.
const FlagDerived = 1

// FirstReservedKind is the first of the kinds that are the engine's own; those
// below are the host's.
const FirstReservedKind = 0xFFFF0000

// Record kinds of the engine.
const (
	KindCheckpoint = FirstReservedKind + iota // in a derived group: a checkpoint
	KindBlob                                  // in a derived group: the host's own checkpoint
	KindIndexRun                              // in a derived group: a piece of an index run
	KindFloor                                 // in a derived group: a retention floor
	KindIndexKey                              // in a commit: a key for the index
	KindFork                                  // in a commit: where a fork began
	KindSalvaged                              // in a commit: a record found behind damage
)

// Record flags.
const (
	// FlagRequired asks readers that do not know the kind to refuse
	// projection; the log itself stays readable.
	FlagRequired = 1

	codecShift = 8
	knownFlags = FlagRequired | 0xFF<<codecShift
)
