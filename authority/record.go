package authority

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/tidemark-log/tidemark/snapshot"
)

// Phase is where a run stands, as its newest record says.
type Phase uint8

// The phases; the numbers are in the record.
const (
	Active    Phase = 1 // leased, or orphaned by the death of its owner
	Suspended Phase = 2 // a claim is out; importable
	Importing Phase = 3 // the claim is consumed; never importable again
	Completed Phase = 4 // tombstones, absorbing
	Failed    Phase = 5
	Cancelled Phase = 6
	Damaged   Phase = 255 // not in a record: there is none to believe
)

// Terminal reports whether nothing can follow.
func (p Phase) Terminal() bool { return p >= Completed && p <= Cancelled }

// String is the phase's name.
func (p Phase) String() string {
	names := []string{"none", "active", "suspended", "importing", "completed", "failed", "cancelled"}
	switch {
	case int(p) < len(names):
		return names[p]
	case p == Damaged:
		return "damaged"
	}
	return "unknown"
}

// phaseOf is the phase a signed lifecycle is recorded as.
func phaseOf(l snapshot.Lifecycle) Phase {
	if l == snapshot.Suspended {
		return Suspended
	}
	return Phase(l) + Completed - Phase(snapshot.Completed)
}

// A record is one sector, so that a power cut leaves it old or new:
//
//	offset size
//	0      8   magic "TMAUTHRC"
//	8      2   version 1
//	10     1   phase
//	11     1   slot: its place in the state file
//	12     4   claim: lifecycle
//	16     8   record sequence: +1 with every record of the run
//	24     8   transition generation
//	32     8   key generation that signed the record
//	40     32  scope
//	72     16  instance nonce, random at Start
//	88     32  MAC of the record before; zero in the first
//	120    1   run ID length
//	121    128 run ID
//	249    7   zero
//	256    8   claim: last sequence; kept when the claim is gone
//	264    8   claim: key generation
//	272    1   claim: format length
//	273    31  claim: format
//	304    32  claim: payload SHA-256
//	336    32  claim: MAC
//	368    16  bound log position: log ID
//	384    8   bound log position: revision
//	392    8   bound log position: digest
//	400    80  zero
//	480    32  MAC over the 480 bytes before
//
// Numbers are big-endian. The format is closed: a reader encodes what it read
// and demands the same bytes, so no byte string is a second spelling.
const (
	recordMagic   = "TMAUTHRC"
	recordVersion = 1
	sectorSize    = 512
	sectors       = 64
	stateSize     = sectors * sectorSize
	macOffset     = sectorSize - 32
)

type sector = [sectorSize]byte

type record struct {
	phase      Phase
	slot       uint8
	sequence   uint64
	transition uint64
	generation uint64 // of the key that signed the record
	scope      sum32
	nonce      [16]byte
	previous   sum32 // MAC of the record before
	runID      string
	claim      recordClaim
	position   position
}

// recordClaim is the claim of a suspended or finished run. In the other phases,
// and in a tombstone made by Resolve, all but the last sequence is zero.
type recordClaim struct {
	lifecycle  snapshot.Lifecycle
	sequence   uint64
	generation uint64
	format     string
	payload    sum32
	mac        sum32
}

func (c *recordClaim) empty() bool {
	return c.lifecycle == 0 && c.generation == 0 && c.format == "" &&
		equal(c.payload, sum32{}) && equal(c.mac, sum32{})
}

// position is the place in the run's log that a claim is bound to: all zero
// while the run is bound to none.
type position struct {
	logID    [16]byte
	revision uint64
	digest   uint64
}

// body writes everything but the MAC.
func (r *record) body() (s sector) {
	copy(s[0:8], recordMagic)
	binary.BigEndian.PutUint16(s[8:], recordVersion)
	s[10] = byte(r.phase)
	s[11] = r.slot
	binary.BigEndian.PutUint32(s[12:], uint32(r.claim.lifecycle))
	binary.BigEndian.PutUint64(s[16:], r.sequence)
	binary.BigEndian.PutUint64(s[24:], r.transition)
	binary.BigEndian.PutUint64(s[32:], r.generation)
	copy(s[40:72], r.scope[:])
	copy(s[72:88], r.nonce[:])
	copy(s[88:120], r.previous[:])
	s[120] = byte(len(r.runID))
	copy(s[121:249], r.runID)
	binary.BigEndian.PutUint64(s[256:], r.claim.sequence)
	binary.BigEndian.PutUint64(s[264:], r.claim.generation)
	s[272] = byte(len(r.claim.format))
	copy(s[273:304], r.claim.format)
	copy(s[304:336], r.claim.payload[:])
	copy(s[336:368], r.claim.mac[:])
	copy(s[368:384], r.position.logID[:])
	binary.BigEndian.PutUint64(s[384:], r.position.revision)
	binary.BigEndian.PutUint64(s[392:], r.position.digest)
	return s
}

// seal encodes and signs.
func (r *record) seal(key []byte) sector {
	s := r.body()
	mac := authenticate(key, s[:macOffset])
	copy(s[macOffset:], mac[:])
	return s
}

func macOf(s []byte) (mac sum32) {
	copy(mac[:], s[macOffset:])
	return mac
}

// parseRecord reads the form of a sector; whether to believe it takes its MAC.
func parseRecord(s []byte) (record, bool) {
	if len(s) != sectorSize || string(s[0:8]) != recordMagic || s[120] > maxRunID || s[272] > maxFormat {
		return record{}, false
	}
	r := record{
		phase:      Phase(s[10]),
		slot:       s[11],
		sequence:   binary.BigEndian.Uint64(s[16:]),
		transition: binary.BigEndian.Uint64(s[24:]),
		generation: binary.BigEndian.Uint64(s[32:]),
		scope:      sum32(s[40:72]),
		nonce:      [16]byte(s[72:88]),
		previous:   sum32(s[88:120]),
		runID:      string(s[121 : 121+int(s[120])]),
		claim: recordClaim{
			lifecycle:  snapshot.Lifecycle(binary.BigEndian.Uint32(s[12:])),
			sequence:   binary.BigEndian.Uint64(s[256:]),
			generation: binary.BigEndian.Uint64(s[264:]),
			format:     string(s[273 : 273+int(s[272])]),
			payload:    sum32(s[304:336]),
			mac:        sum32(s[336:368]),
		},
		position: position{
			logID:    [16]byte(s[368:384]),
			revision: binary.BigEndian.Uint64(s[384:]),
			digest:   binary.BigEndian.Uint64(s[392:]),
		},
	}
	again := r.body()
	return r, bytes.Equal(again[:macOffset], s[:macOffset]) && r.sound()
}

// sound is what every record this package writes satisfies.
func (r *record) sound() bool {
	switch {
	case r.slot >= sectors, r.sequence == 0, r.transition == 0, r.generation == 0,
		snapshot.CheckRunID(r.runID) != nil,
		r.position != position{} && (r.position.revision == 0 || r.position.logID == [16]byte{}):
		return false
	}
	empty := r.claim.empty()
	switch r.phase {
	case Active, Importing:
		return empty
	case Suspended:
		return r.claimed()
	case Completed, Failed, Cancelled:
		return empty || r.claimed()
	case Damaged:
	}
	return false
}

// claimed reports whether the record holds a whole claim that fits its phase.
func (r *record) claimed() bool {
	l := r.claim.lifecycle
	return l >= snapshot.Suspended && l <= snapshot.Cancelled && phaseOf(l) == r.phase &&
		r.claim.sequence > 0 && r.claim.generation > 0 && r.claim.format == snapshot.Format
}

// head is what the record's claim covers.
func (r *record) head() header {
	return header{
		format:    r.claim.format,
		runID:     r.runID,
		sequence:  r.claim.sequence,
		lifecycle: r.claim.lifecycle,
		payload:   r.claim.payload,
	}
}

// runName is SHA-256 of a run ID in hexadecimal: what files are named by, so
// that no run ID ever reaches the file system.
type runName string

const (
	runPrefix   = "run-"
	lockSuffix  = ".lock"
	stateSuffix = ".state"
)

func hashOf(runID string) sum32 { return sha256.Sum256([]byte(runID)) }

func nameOf(runID string) runName {
	h := hashOf(runID)
	return runName(hex.EncodeToString(h[:]))
}

func (n runName) lock() string  { return runPrefix + string(n) + lockSuffix }
func (n runName) state() string { return runPrefix + string(n) + stateSuffix }

// rangeOffset is the run's byte in authority.lock. Byte 0 is the keyring's.
func (n runName) rangeOffset() int64 {
	b, err := hex.DecodeString(string(n[:16]))
	if err != nil {
		panic("internal error: run name is not hexadecimal")
	}
	return int64(binary.BigEndian.Uint64(b)>>2) | 1
}

// newest finds the last sector that is not zero. What lies before it is
// history; what lies after it is zero. Where to look does not depend on what is
// found, so the time it takes tells nothing.
func newest(file []byte) (slot int, s []byte) {
	slot = -1
	var zero sector
	for i := range sectors {
		if at := file[i*sectorSize : (i+1)*sectorSize]; !bytes.Equal(at, zero[:]) {
			slot, s = i, at
		}
	}
	return slot, s
}
