package authority

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/tidemark-log/tidemark/internal/securedir"
)

// FuzzRecord: what parses encodes to the same bytes; one flipped bit of what is
// believed is never believed.
func FuzzRecord(f *testing.F) {
	f.Add(goldenRecord(f), uint16(0))
	r := goldenRecordValue()
	for p := Active; p <= Cancelled; p++ {
		c := r
		c.phase, c.claim = p, recordClaim{sequence: 3}
		s := c.body()
		f.Add(s[:], uint16(p)*97)
	}
	ring, err := newRing(goldenRing(f), securedir.Stat{})
	must(f, err)
	f.Fuzz(func(t *testing.T, b []byte, flip uint16) {
		rec, ok := parseRecord(b)
		if !ok {
			return
		}
		again := rec.body()
		if !bytes.Equal(again[:macOffset], b[:macOffset]) {
			t.Fatal("decode then encode is not the identity")
		}
		rec.generation, rec.scope = 3, ring.scope
		sealed, _ := ring.sealRecord(&rec)
		if back, ok := parseRecord(sealed[:]); !ok || !ring.believes(&back, sealed[:]) {
			t.Fatal("a sealed record is not believed")
		}
		bit := int(flip) % (sectorSize * 8)
		sealed[bit/8] ^= 1 << (bit % 8)
		if back, ok := parseRecord(sealed[:]); ok && ring.believes(&back, sealed[:]) {
			t.Fatalf("bit %d flipped and believed", bit)
		}
	})
}

// FuzzState: whatever a state file holds, judging it does not panic, and what
// is believed is the last sector that is not zero.
func FuzzState(f *testing.F) {
	f.Add(goldenRecord(f), uint8(9), []byte{})
	f.Add(goldenRecord(f), uint8(9), []byte{1, 0, 3, 200, 77})
	ring, err := newRing(goldenRing(f), securedir.Stat{})
	must(f, err)
	f.Fuzz(func(t *testing.T, s []byte, slot uint8, edits []byte) {
		file := make([]byte, stateSize)
		copy(file[int(slot%sectors)*sectorSize:], s[:min(len(s), sectorSize)])
		for i := 0; i+2 < len(edits); i += 3 {
			file[(int(edits[i])<<8|int(edits[i+1]))%stateSize] ^= edits[i+2]
		}
		rec, raw, ok := ring.judgeState(file, nameOf("run-1"))
		if !ok {
			return
		}
		last, _ := newest(file)
		if int(rec.slot) != last || !bytes.Equal(raw, file[last*sectorSize:(last+1)*sectorSize]) {
			t.Fatal("believed another sector than the newest")
		}
		ring.judgeHistory(file, &rec)
	})
}

// FuzzKeyring: what is accepted satisfies every rule; one flipped bit never is.
func FuzzKeyring(f *testing.F) {
	f.Add(goldenRing(f), uint16(3))
	first, err := firstRing(new(counter), securedir.Stat{Inode: 1})
	must(f, err)
	f.Add(first, uint16(900))
	f.Fuzz(func(t *testing.T, b []byte, flip uint16) {
		if len(b) > ringFixed+sha256.Size { // the sum is no obstacle
			sum := sha256.Sum256(b[:len(b)-sha256.Size])
			copy(b[len(b)-sha256.Size:], sum[:])
		}
		if !soundRing(b) {
			return
		}
		r, err := newRing(bytes.Clone(b), securedir.Stat{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.secret.Destroy()
		if _, ok := r.key(r.primary()); !ok || r.count < 1 || r.count > ringMax {
			t.Fatal("no primary key")
		}
		bit := int(flip) % (len(b) * 8)
		bad := bytes.Clone(b)
		bad[bit/8] ^= 1 << (bit % 8)
		if soundRing(bad) {
			t.Fatalf("bit %d flipped and accepted", bit)
		}
	})
}

// FuzzEnvelope: what parses encodes to the same bytes.
func FuzzEnvelope(f *testing.F) {
	w := newWorld(f)
	f.Add(w.suspended("run").Encoding())
	p := w.boot()
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEnvelope(b)
		if err != nil {
			wantErr(t, err, ErrInvalid)
			return
		}
		if !bytes.Equal(e.Encoding(), b) {
			t.Fatal("decode then encode is not the identity")
		}
		if _, err := p.a.Verify(ctx, e); err != nil && err != ErrVerification {
			t.Fatal(err)
		}
	})
}

// counter is a source of randomness that counts: repeatable, never repeating.
type counter struct{ n uint32 }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		c.n++
		p[i] = byte(c.n * 0x9e3779b1 >> 24)
	}
	return len(p), nil
}

func TestR104_EveryBitFlipOfARecordIsRefused(t *testing.T) {
	ring, err := newRing(goldenRing(t), securedir.Stat{})
	must(t, err)
	good := goldenRecord(t)
	for bit := range sectorSize * 8 {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if rec, ok := parseRecord(bad); ok && ring.believes(&rec, bad) {
			t.Fatalf("bit %d", bit)
		}
	}
	for n := range good {
		if _, ok := parseRecord(good[:n]); ok {
			t.Fatalf("cut at %d", n)
		}
	}
	for _, change := range []func(*record){
		func(r *record) { r.phase = 0 },
		func(r *record) { r.phase = 7 },
		func(r *record) { r.phase = Damaged },
		func(r *record) { r.phase = Active },
		func(r *record) { r.phase = Completed },
		func(r *record) { r.slot = sectors },
		func(r *record) { r.sequence = 0 },
		func(r *record) { r.transition = 0 },
		func(r *record) { r.generation = 0 },
		func(r *record) { r.runID = "" },
		func(r *record) { r.runID = "a\xff" },
		func(r *record) { r.claim.sequence = 0 },
		func(r *record) { r.claim.generation = 0 },
		func(r *record) { r.claim.format = "other" },
		func(r *record) { r.claim.lifecycle = 0 },
		func(r *record) { r.claim.lifecycle = 5 },
		func(r *record) { r.position.revision = 0 },
		func(r *record) { r.position.logID = [16]byte{} },
	} {
		r := goldenRecordValue()
		change(&r)
		s := r.body()
		if _, ok := parseRecord(s[:]); ok {
			t.Errorf("accepted %+v", r)
		}
	}
}

// T8, on the bytes: cut at every length, every bit flipped.
func TestT08_KeyringCutAndFlipped(t *testing.T) {
	good := goldenRing(t)
	for n := range good {
		if soundRing(good[:n]) {
			t.Fatalf("cut at %d accepted", n)
		}
	}
	for bit := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if soundRing(bad) {
			t.Fatalf("bit %d flipped and accepted", bit)
		}
	}
	// With the sum made right again, the rules refuse.
	for name, change := range map[string]func([]byte){
		"version":             func(b []byte) { b[11] = 2 },
		"scope zero":          func(b []byte) { clear(b[16:48]) },
		"R2: key is scope":    func(b []byte) { copy(b[len(b)-64:], b[16:48]) },
		"key is witness key":  func(b []byte) { copy(b[len(b)-64:], b[48:80]) },
		"R2: key zero":        func(b []byte) { clear(b[len(b)-64 : len(b)-32]) },
		"two equal keys":      func(b []byte) { copy(b[len(b)-64:len(b)-32], b[160:192]) },
		"number repeated":     func(b []byte) { b[151] = 1 },
		"number zero":         func(b []byte) { b[103] = 0 },
		"two primaries":       func(b []byte) { b[152] = 1 },
		"no primary":          func(b []byte) { b[200] = 2 },
		"unknown status":      func(b []byte) { b[152] = 4 },
		"retired with a key":  func(b []byte) { b[120] = 1 },
		"padding":             func(b []byte) { b[153] = 1 },
		"retired is last one": func(b []byte) { b[200] = 3; clear(b[len(b)-64 : len(b)-32]) },
	} {
		b := bytes.Clone(good)
		change(b)
		if _, err := closeRing(b, 3); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestR2_RandomnessThatRepeatsIsRefused(t *testing.T) {
	if _, err := firstRing(constant(7), securedir.Stat{}); err == nil {
		t.Error("scope equal to key accepted")
	}
	if _, err := firstRing(constant(0), securedir.Stat{}); err == nil {
		t.Error("zero key accepted")
	}
}

type constant byte

func (c constant) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c)
	}
	return len(p), nil
}
