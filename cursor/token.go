package cursor

import (
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// A token is one word of at most 119 characters that survives shells, URLs,
// JSON, chat windows and a double click:
//
//	tm1_ 64 characters of body, 7 characters of check
//
//	"tm"      every token of every version
//	version   decimal, from 1, no leading zero, at most 3 digits
//	"_"
//	body      version 1: 40 bytes, 5 bits per character, first bit first
//	check     the last 7 characters: CRC-32C of all characters before them
//
//	body      0      16 log ID
//	         16       8 revision, big-endian
//	         24       8 digest, big-endian
//	         32       8 view, big-endian
//
// Frame and check are the same in every version, so a reader can tell a token
// of a later version from a damaged one.
//
// Why no single slip of the hand goes unnoticed, whatever the token: a changed
// character is a burst of at most 8 bits and two exchanged neighbours one of
// at most 16, and CRC-32C misses no burst up to 32 bits. If the neighbours are
// the last of the body and the first of the check, the CRC changes in more
// bits than that one character of the check holds. A character too many or too
// few is a wrong length, unless it turned the version into another one; the
// CRC of the two beginnings then differs, and running it on over the same
// characters keeps different values different. The check is compared as text,
// so its three spare bits cannot vary, and a letter in the other case is no
// letter of the alphabet.
//
// The check finds slips, not forgeries: anyone can print a token. What a token
// says is believed only as far as [Check] finds it in the log.
const (
	tokenPrefix  = "tm"
	tokenVersion = "1"
	tokenSep     = "_"
	tokenMax     = 119 // characters, any version
	versionMax   = 3   // digits
	bodyBytes    = 16 + 8 + 8 + 8
	bodyLen      = bodyBytes * 8 / 5 // characters; 40 bytes leave no spare bits
	checkLen     = 7                 // characters: 32 bits and 3 spare ones, zero
)

// alphabet has digits and lower-case letters without i, l, o and u, which are
// mistaken for others, in ascending order: tokens of one log sort by revision.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var (
	textEncoding = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

// String returns the token of c: 75 characters, digits, lower-case letters and
// one underscore. The same cursor always has the same token, and [Parse] gives
// back c. Tokens of one log sort by revision.
func (c Cursor) String() string {
	var body [bodyBytes]byte
	copy(body[0:16], c.Log[:])
	binary.BigEndian.PutUint64(body[16:24], c.Revision)
	binary.BigEndian.PutUint64(body[24:32], uint64(c.Digest))
	binary.BigEndian.PutUint64(body[32:40], uint64(c.View))
	return seal(tokenPrefix + tokenVersion + tokenSep + textEncoding.EncodeToString(body[:]))
}

// MarshalText returns the token of c and never fails.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText sets c as [Parse] would. On error c is unchanged.
func (c *Cursor) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}

// Parse returns the cursor that token was printed from. It accepts exactly the
// texts [Cursor.String] returns, so printing the result gives token again.
// Nothing is trimmed, folded or guessed: any one character changed, dropped,
// added, or exchanged with its neighbour makes the text [ErrMalformed]. An
// undamaged token of a version this package does not know is [ErrVersion].
// With an error the cursor is the zero Cursor.
//
// Parse says nothing about any log; [Check] does.
func Parse(token string) (Cursor, error) {
	version, text, err := open(token)
	switch {
	case err != nil:
		return Cursor{}, err
	case version != tokenVersion:
		return Cursor{}, ErrVersion
	case len(text) != bodyLen:
		return Cursor{}, ErrMalformed
	}
	body, err := textEncoding.DecodeString(text)
	if err != nil {
		panic("internal error: cursor: checked token does not decode: " + err.Error())
	}
	return Cursor{
		Position: Position{
			Log:      LogID(body[0:16]),
			Revision: binary.BigEndian.Uint64(body[16:24]),
		},
		Digest: Digest(binary.BigEndian.Uint64(body[24:32])),
		View:   ViewID(binary.BigEndian.Uint64(body[32:40])),
	}, nil
}

// open checks the frame that all versions share and takes it off.
func open(token string) (version, body string, err error) {
	if len(token) > tokenMax {
		return "", "", ErrMalformed
	}
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return "", "", ErrMalformed
	}
	version, rest, ok = strings.Cut(rest, tokenSep)
	if !ok || !isVersion(version) || len(rest) < checkLen || strings.Trim(rest, alphabet) != "" {
		return "", "", ErrMalformed
	}
	if sealed := token[:len(token)-checkLen]; seal(sealed) != token {
		return "", "", ErrMalformed
	}
	return version, rest[:len(rest)-checkLen], nil
}

// seal appends the check to everything that comes before it.
func seal(text string) string {
	sum := crc32.Checksum([]byte(text), castagnoli)
	return text + textEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// isVersion keeps one way to write a version.
func isVersion(s string) bool {
	return s != "" && len(s) <= versionMax && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}
