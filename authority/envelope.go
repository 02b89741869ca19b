package authority

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/tidemark-log/tidemark/snapshot"
)

// Envelope is a snapshot with the claim of the authority that signed it: what
// crosses a process boundary. Only Lease.Suspend and Lease.Finish make one, and
// ParseEnvelope reads one back; none of them yields one without a claim. The
// zero value is refused everywhere.
//
// The claim is integrity and provenance, not encryption: the payload is
// readable by whoever holds the envelope.
type Envelope struct {
	head    header
	claim   Claim
	payload []byte
}

// RunID is the run's identity as the envelope states it.
func (e Envelope) RunID() string { return e.head.runID }

// LastSequence is the run's last committed event as the envelope states it.
func (e Envelope) LastSequence() uint64 { return e.head.sequence }

// Lifecycle is what may become of the run as the envelope states it.
func (e Envelope) Lifecycle() snapshot.Lifecycle { return e.head.lifecycle }

// Claim is a copy of the claim.
func (e Envelope) Claim() Claim { return e.claim }

// String redacts.
func (e Envelope) String() string { return "[envelope]" }

// GoString redacts.
func (e Envelope) GoString() string { return "[envelope]" }

// The encoding: numbers big-endian, texts with their length as u32.
//
//	8  magic "TMAUTHEN"     4  version 1
//	   text format             text run ID
//	8  last sequence        4  lifecycle      32 payload SHA-256
//	32 scope                8  key generation 32 MAC
//	4  payload length          payload
//
// Nothing follows.
const (
	envelopeMagic   = "TMAUTHEN"
	envelopeVersion = 1
	envelopeFixed   = 8 + 4 + 4 + 4 + 8 + 4 + 32 + 32 + 8 + 32 + 4
	maxFormat       = 31
	maxRunID        = 128
)

// Encoding is the envelope in bytes; the caller owns them. It is nil for the
// zero value.
func (e Envelope) Encoding() []byte {
	if e.check() != nil {
		return nil
	}
	b := make([]byte, 0, envelopeFixed+len(e.head.format)+len(e.head.runID)+len(e.payload))
	b = append(b, envelopeMagic...)
	b = binary.BigEndian.AppendUint32(b, envelopeVersion)
	b = appendText(b, e.head.format)
	b = appendText(b, e.head.runID)
	b = binary.BigEndian.AppendUint64(b, e.head.sequence)
	b = binary.BigEndian.AppendUint32(b, uint32(e.head.lifecycle))
	b = append(b, e.head.payload[:]...)
	b = append(b, e.claim.Scope[:]...)
	b = binary.BigEndian.AppendUint64(b, e.claim.Generation)
	b = append(b, e.claim.MAC[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.payload)))
	return append(b, e.payload...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// ParseEnvelope reads an encoding. It checks the form only: whether to believe
// the envelope is asked of an Authority. The payload is not copied and not
// hashed, so that a forgery costs nothing; b must not be changed afterwards.
func ParseEnvelope(b []byte) (Envelope, error) {
	const op = "parse envelope"
	r := reader{b: b}
	if string(r.take(8)) != envelopeMagic || r.number(4) != envelopeVersion {
		return Envelope{}, fail(op, ErrInvalid)
	}
	var e Envelope
	e.head.format = r.text(maxFormat)
	e.head.runID = r.text(maxRunID)
	e.head.sequence = r.number(8)
	e.head.lifecycle = snapshot.Lifecycle(r.number(4))
	r.sum(&e.head.payload)
	r.sum(&e.claim.Scope)
	e.claim.Generation = r.number(8)
	r.sum(&e.claim.MAC)
	n := r.number(4)
	if r.bad || n != uint64(len(r.b)) {
		return Envelope{}, fail(op, ErrInvalid)
	}
	e.payload = slices.Clip(r.b)
	if e.check() != nil {
		return Envelope{}, fail(op, ErrInvalid)
	}
	return e, nil
}

// check is the form: everything that can be said without a key.
func (e *Envelope) check() error {
	switch {
	case e.head.format != snapshot.Format,
		snapshot.CheckRunID(e.head.runID) != nil,
		e.head.sequence == 0,
		e.head.lifecycle < snapshot.Suspended || e.head.lifecycle > snapshot.Cancelled,
		e.claim.Generation == 0,
		len(e.payload) == 0 || len(e.payload) > snapshot.MaxSize:
		return ErrInvalid
	}
	return nil
}

// open gives the snapshot inside, once the claim is believed: the payload is
// the one that was signed, and says what the header says.
func (e *Envelope) open() (snapshot.Snapshot, error) {
	if !equal(sha256.Sum256(e.payload), e.head.payload) {
		return snapshot.Snapshot{}, ErrVerification
	}
	s, err := snapshot.Decode(e.payload)
	if err != nil || !e.head.same(headerOf(s)) {
		return snapshot.Snapshot{}, ErrVerification
	}
	return s, nil
}

func headerOf(s snapshot.Snapshot) header {
	return header{
		format:    snapshot.Format,
		runID:     s.RunID(),
		sequence:  s.LastSequence(),
		lifecycle: s.Lifecycle(),
		payload:   s.Digest(),
	}
}

// reader consumes bytes; after the first fault it only returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

// number is a big-endian number of n bytes, at most 8.
func (r *reader) number(n int) uint64 {
	var v uint64
	for _, b := range r.take(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (r *reader) sum(to *sum32) { copy(to[:], r.take(len(to))) }

func (r *reader) text(limit int) string {
	n := r.number(4)
	if n > uint64(limit) {
		r.bad, r.b = true, nil
		return ""
	}
	return string(r.take(int(n)))
}
