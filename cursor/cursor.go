// Package cursor knows positions in a log, the witnesses of its history, and
// the printable tokens that carry both out of the process and back.
//
// A [Cursor] says: everything in this view, up to and including this revision
// of this log, was delivered. It names the revision together with the digest
// of that commit, so a log that was restored from a copy and then went another
// way is told apart from the one the cursor was taken from. [Parse] decides
// whether a text is a cursor, [Check] whether a log can resume from it. Neither
// repairs, clamps or resets anything: a cursor is taken up exactly as it was
// issued, or it is refused with the reason.
//
// The package is pure: values in, values out, no I/O, no clock, no goroutine.
// Everything in it may be used concurrently.
package cursor

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// LogID is the random 128-bit identity of a log. A fork has its own, a copy
// and a compacted file keep theirs. The zero LogID is the identity of no log.
type LogID [16]byte

// ParseLogID is the inverse of [LogID.String]: exactly 32 lower-case
// hexadecimal digits, anything else is [ErrMalformed].
func ParseLogID(s string) (LogID, error) {
	var id LogID
	if err := parseHex(id[:], s); err != nil {
		return LogID{}, err
	}
	return id, nil
}

// String returns 32 lower-case hexadecimal digits.
func (id LogID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText returns the text of [LogID.String] and never fails.
func (id LogID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText sets id as [ParseLogID] would. On error id is unchanged.
func (id *LogID) UnmarshalText(text []byte) error {
	parsed, err := ParseLogID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// Digest is the 64-bit chain value of a commit: it covers the commit and,
// through its predecessor's digest, every commit before it. Two histories with
// the same digest at the same revision are the same history up to there, as
// far as accidents go; it is no proof against a forger. Every value is legal,
// zero included.
type Digest uint64

// String returns 16 lower-case hexadecimal digits, the most significant first.
func (d Digest) String() string { return hex64(uint64(d)) }

// MarshalText returns the text of [Digest.String] and never fails. As a JSON
// number a digest would lose its low bits in most readers.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is the inverse of [Digest.MarshalText]: exactly 16 lower-case
// hexadecimal digits, anything else is [ErrMalformed] and leaves d unchanged.
func (d *Digest) UnmarshalText(text []byte) error {
	var b [8]byte
	if err := parseHex(b[:], string(text)); err != nil {
		return err
	}
	*d = Digest(binary.BigEndian.Uint64(b[:]))
	return nil
}

// Position is the address of a commit.
type Position struct {
	Log LogID // the log that issued the position

	// Revision is the number of the commit, counted densely from 1 or from
	// the log's base. 0 is the place before the first commit.
	Revision uint64
}

// Cursor means: everything in View up to and including Position was
// delivered, and the commit there, whether the view shows it or not, had this
// Digest. At revision 0, and at the base of a log that continues another one,
// Digest is the base's digest, the one the first commit chains on: zero for a
// log that begins at nothing.
//
// A Cursor is a plain value and comparable. The zero Cursor belongs to no log:
// every log refuses it with [ErrForeign].
type Cursor struct {
	Position
	Digest Digest
	View   ViewID
}

func hex64(v uint64) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, v))
}

// parseHex fills dst from exactly twice as many lower-case digits.
func parseHex(dst []byte, s string) error {
	if len(s) != hex.EncodedLen(len(dst)) || strings.ContainsAny(s, "ABCDEF") {
		return ErrMalformed
	}
	if _, err := hex.Decode(dst, []byte(s)); err != nil {
		return ErrMalformed
	}
	return nil
}
