package authority

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"

	"github.com/tidemark-log/tidemark/internal/securedir"
)

// The keyring is the identity of the directory and its keys, in one file that is
// only ever replaced as a whole:
//
//	offset size
//	0      8   magic "TMAUTHKR"
//	8      4   version 1
//	12     4   number of generations, 1 to 64
//	16     32  scope
//	48     32  witness key
//	80     8   the directory's inode number
//	88     8   the directory's time of birth: an identity, not a time
//	96     48  per generation, ascending: number 8, status 1, zero 7, key 32
//	…      32  SHA-256 of everything before
//
// Numbers are big-endian. Exactly the last generation is the primary; a retired
// one has a zero key, so that its number is never used again.
const (
	ringMagic   = "TMAUTHKR"
	ringVersion = 1
	ringFixed   = 96
	ringEntry   = 48
	ringMax     = 64
	ringLimit   = ringFixed + ringMax*ringEntry + sha256.Size
)

type keyStatus uint8

const (
	keyPrimary keyStatus = 1 // signs and verifies
	keyVerify  keyStatus = 2 // verifies
	keyRetired keyStatus = 3 // gone
)

// ring is a keyring in memory: its bytes, outside the heap, are the only copy
// of the keys. It is immutable.
type ring struct {
	secret *securedir.Secret // the file's bytes
	stat   securedir.Stat    // the file they were read from
	scope  sum32
	count  int
}

var errRing = errors.New("keyring refused")

// newRing takes over encoded bytes; it clears the caller's copy.
func newRing(encoded []byte, st securedir.Stat) (*ring, error) {
	defer clear(encoded)
	if !soundRing(encoded) {
		return nil, errRing
	}
	r := &ring{
		secret: securedir.NewSecret(len(encoded)),
		stat:   st,
		scope:  sum32(encoded[16:48]),
		count:  (len(encoded) - ringFixed - sha256.Size) / ringEntry,
	}
	copy(r.secret.Bytes(), encoded)
	return r, nil
}

// soundRing is the form of a keyring, all of it.
func soundRing(b []byte) bool {
	if len(b) < ringFixed+ringEntry+sha256.Size || len(b) > ringLimit || string(b[:8]) != ringMagic ||
		binary.BigEndian.Uint32(b[8:]) != ringVersion {
		return false
	}
	end := len(b) - sha256.Size
	count := int64(binary.BigEndian.Uint32(b[12:]))
	if int64(end) != ringFixed+count*ringEntry || !equal(sha256.Sum256(b[:end]), sum32(b[end:])) {
		return false
	}
	secrets := []sum32{{}, sum32(b[16:48]), sum32(b[48:80])}
	defer clear(secrets)
	last := uint64(0)
	for at := ringFixed; at < end; at += ringEntry {
		number, status, key := binary.BigEndian.Uint64(b[at:]), keyStatus(b[at+8]), sum32(b[at+16:at+48])
		primary := at+ringEntry == end
		if number <= last || (status == keyPrimary) != primary || status < keyPrimary || status > keyRetired ||
			!bytes.Equal(b[at+9:at+16], make([]byte, 7)) {
			return false
		}
		last = number
		if (status == keyRetired) != equal(key, sum32{}) {
			return false
		}
		if status != keyRetired {
			secrets = append(secrets, key)
		}
	}
	return distinct(secrets)
}

// distinct reports whether no two values are equal: scope, witness key and keys
// are all random and none is zero.
func distinct(values []sum32) bool {
	for i := range values {
		for j := range i {
			if equal(values[i], values[j]) {
				return false
			}
		}
	}
	return true
}

// firstRing is the keyring of a new directory.
func firstRing(random io.Reader, dir securedir.Stat) ([]byte, error) {
	b := make([]byte, ringFixed+ringEntry+sha256.Size)
	copy(b, ringMagic)
	binary.BigEndian.PutUint32(b[8:], ringVersion)
	if _, err := io.ReadFull(random, b[16:80]); err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint64(b[80:], dir.Inode)
	binary.BigEndian.PutUint64(b[88:], uint64(dir.Birth))
	if err := fillEntry(b[ringFixed:], 1, random); err != nil {
		return nil, err
	}
	return closeRing(b, 1)
}

func fillEntry(b []byte, number uint64, random io.Reader) error {
	binary.BigEndian.PutUint64(b, number)
	b[8] = byte(keyPrimary)
	_, err := io.ReadFull(random, b[16:48])
	return err
}

// closeRing sets count and sum, and refuses what would not be read back: a
// source of randomness that repeats itself ends here.
func closeRing(b []byte, count int) ([]byte, error) {
	binary.BigEndian.PutUint32(b[12:], uint32(count))
	end := len(b) - sha256.Size
	sum := sha256.Sum256(b[:end])
	copy(b[end:], sum[:])
	if !soundRing(b) {
		clear(b)
		return nil, errRing
	}
	return b, nil
}

// rotated is the keyring with a new primary. Where there is no room, the oldest
// retired generation is forgotten; its number stays below all others.
func (r *ring) rotated(random io.Reader) ([]byte, error) {
	old := r.entries()
	if r.count == ringMax {
		at := r.find(func(s keyStatus, _ uint64) bool { return s == keyRetired })
		if at < 0 {
			return nil, ErrCapacity
		}
		old = append(append([]byte(nil), old[:at*ringEntry]...), old[(at+1)*ringEntry:]...)
	}
	b := make([]byte, ringFixed+len(old)+ringEntry+sha256.Size)
	copy(b, r.secret.Bytes()[:ringFixed])
	copy(b[ringFixed:], old)
	at := ringFixed + len(old)
	b[at-ringEntry+8] = byte(keyVerify)
	if err := fillEntry(b[at:], r.primary()+1, random); err != nil {
		clear(b)
		return nil, err
	}
	return closeRing(b, len(old)/ringEntry+1)
}

// retired is the keyring without the key of a verify-only generation.
func (r *ring) retired(generation uint64) ([]byte, error) {
	at := r.find(func(s keyStatus, n uint64) bool { return s == keyVerify && n == generation })
	if at < 0 {
		return nil, ErrState
	}
	b := append([]byte(nil), r.secret.Bytes()...)
	entry := b[ringFixed+at*ringEntry:][:ringEntry]
	entry[8] = byte(keyRetired)
	clear(entry[16:48])
	return closeRing(b, r.count)
}

// list names the generations and what they may do.
func (r *ring) list() []Key {
	names := map[keyStatus]string{keyPrimary: "primary", keyVerify: "verify-only", keyRetired: "retired"}
	var keys []Key
	r.find(func(s keyStatus, n uint64) bool {
		keys = append(keys, Key{n, names[s]})
		return false
	})
	return keys
}

func (r *ring) entries() []byte {
	b := r.secret.Bytes()
	return b[ringFixed : len(b)-sha256.Size]
}

// find is the index of the first generation that is meant, or -1.
func (r *ring) find(meant func(status keyStatus, number uint64) bool) int {
	entries := r.entries()
	for i := range r.count {
		e := entries[i*ringEntry:]
		if meant(keyStatus(e[8]), binary.BigEndian.Uint64(e)) {
			return i
		}
	}
	return -1
}

// primary is the generation that signs.
func (r *ring) primary() uint64 {
	return binary.BigEndian.Uint64(r.entries()[(r.count-1)*ringEntry:])
}

// key is the key of a generation. Where there is none it is the witness key,
// which signs nothing that is ever asked about, so that a generation that
// cannot be resolved costs what a wrong MAC costs; ok tells them apart.
func (r *ring) key(generation uint64) (key []byte, ok bool) {
	entries := r.entries()
	key = r.witnessKey()
	for i := range r.count {
		e := entries[i*ringEntry:][:ringEntry]
		if binary.BigEndian.Uint64(e) == generation && keyStatus(e[8]) != keyRetired {
			key, ok = e[16:48], true
		}
	}
	return key, ok
}

func (r *ring) witnessKey() []byte { return r.secret.Bytes()[48:80] }

// at reports whether the keyring was made in this directory.
func (r *ring) at(dir securedir.Stat) bool {
	b := r.secret.Bytes()
	return binary.BigEndian.Uint64(b[80:]) == dir.Inode && binary.BigEndian.Uint64(b[88:]) == uint64(dir.Birth)
}

// sealRecord signs a record under its generation's record key.
func (r *ring) sealRecord(rec *record) (sector, bool) {
	key, ok := r.key(rec.generation)
	derived := authenticate(key, derivedInput(recordDomain, r.scope, rec.generation))
	defer clear(derived[:])
	return rec.seal(derived[:]), ok
}

// believes reports whether a parsed record carries the MAC of this keyring.
func (r *ring) believes(rec *record, s []byte) bool {
	sealed, ok := r.sealRecord(rec)
	same := equal(macOf(sealed[:]), macOf(s))
	return ok && same && equal(rec.scope, r.scope)
}

// claimMAC computes the MAC a claim of a generation must have.
func (r *ring) claimMAC(generation, transition uint64, h header) (mac sum32, ok bool) {
	key, ok := r.key(generation)
	return signClaim(key, r.scope, generation, transition, h), ok
}
