package authority

import (
	"encoding/binary"

	"github.com/tidemark-log/tidemark/internal/securedir"
)

// The witness is the first sector of a run's lock file, which is never replaced:
// how far the run has come. It is written after the record's barrier and never
// synced on its own account, so it can lag and cannot lead: a record older than
// its witness was put back from a copy.
//
//	offset size
//	0      8   magic "TMAUTHWT"
//	8      8   highest record sequence
//	16     16  instance nonce
//	32     8   the lock file's inode number: a copied witness is no witness
//	40     8   the lock file's time of birth
//	48     32  MAC over the 48 bytes before
//	80     432 zero
//
// A sector that does not verify says nothing: power may be lost in the middle
// of a write that nothing waits for, and that must not raise an alarm.
const (
	witnessMagic = "TMAUTHWT"
	witnessBody  = 48
)

type witness struct {
	sequence uint64
	nonce    [16]byte
	inode    uint64
	birth    int64
}

func (w *witness) encode(key []byte) (s sector) {
	copy(s[:8], witnessMagic)
	binary.BigEndian.PutUint64(s[8:], w.sequence)
	copy(s[16:32], w.nonce[:])
	binary.BigEndian.PutUint64(s[32:], w.inode)
	binary.BigEndian.PutUint64(s[40:], uint64(w.birth))
	p := parts{}
	p.text(witnessDomain)
	p.add(s[:witnessBody]...)
	mac := authenticate(key, p)
	copy(s[witnessBody:], mac[:])
	return s
}

// parseWitness reads a witness; ok is false if the sector says nothing.
func parseWitness(s []byte, key []byte) (w witness, ok bool) {
	if len(s) != sectorSize {
		return witness{}, false
	}
	w = witness{
		sequence: binary.BigEndian.Uint64(s[8:]),
		nonce:    [16]byte(s[16:32]),
		inode:    binary.BigEndian.Uint64(s[32:]),
		birth:    int64(binary.BigEndian.Uint64(s[40:])),
	}
	again := w.encode(key)
	if !equal(sum32(again[witnessBody:]), sum32(s[witnessBody:])) || string(s[:8]) != witnessMagic {
		return witness{}, false
	}
	return w, true
}

// judgeWitness says whether a record may be the newest one its run ever had.
// present is whether the lock file held a witness at all.
func judgeWitness(w witness, present bool, lock securedir.Stat, rec *record) bool {
	if !present {
		return true
	}
	return w.inode == lock.Inode && w.birth == lock.Birth && w.nonce == rec.nonce && w.sequence <= rec.sequence
}
