package authority

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/tidemark-log/tidemark/snapshot"
)

// Domains keep every use of a key apart. The first is fixed by the wire
// contract of the envelope, the others are this store's own.
const (
	claimDomain   = "spice.agent.run-authority/v1"
	runKeyDomain  = "tidemark.run-authority-run-key/v1"
	recordDomain  = "tidemark.run-authority-record/v1"
	witnessDomain = "tidemark.run-authority-witness/v1"
)

// sum32 is a scope, a key, a MAC or a digest.
type sum32 = [sha256.Size]byte

// Claim is what makes an envelope believable to the authority that signed it,
// and to no one else.
type Claim struct {
	Scope      [32]byte // the authority directory
	Generation uint64   // the key that signed; at least 1
	MAC        [32]byte
}

// String redacts: a claim is a capability.
func (c Claim) String() string { return "[claim]" }

// GoString redacts.
func (c Claim) GoString() string { return "[claim]" }

// header is what the MAC of a claim covers.
type header struct {
	format    string
	runID     string
	sequence  uint64
	lifecycle snapshot.Lifecycle
	payload   sum32
}

func (h header) same(o header) bool {
	return h.format == o.format && h.runID == o.runID && h.sequence == o.sequence &&
		h.lifecycle == o.lifecycle && equal(h.payload, o.payload)
}

// parts collects length-prefixed components: each is preceded by its length as
// an unsigned 64-bit big-endian number, so no two lists of parts are one string
// of bytes.
type parts []byte

func (p *parts) add(b ...byte) {
	*p = binary.BigEndian.AppendUint64(*p, uint64(len(b)))
	*p = append(*p, b...)
}

func (p *parts) text(s string) {
	*p = binary.BigEndian.AppendUint64(*p, uint64(len(s)))
	*p = append(*p, s...)
}

func (p *parts) number(v uint64) { p.add(binary.BigEndian.AppendUint64(nil, v)...) }

// claimInput is the MAC input of a claim: domain, scope, key generation, format,
// run ID, last sequence, lifecycle, payload digest, in this order.
func claimInput(scope sum32, generation uint64, h header) []byte {
	p := make(parts, 0, 512)
	p.text(claimDomain)
	p.add(scope[:]...)
	p.number(generation)
	p.text(h.format)
	p.text(h.runID)
	p.number(h.sequence)
	p.add(binary.BigEndian.AppendUint32(nil, uint32(h.lifecycle))...)
	p.add(h.payload[:]...)
	return p
}

// runKeyInput is the input of a run's subkey. The transition generation is in it
// and never on the wire: two suspensions of one run have different subkeys.
func runKeyInput(scope sum32, runID string, transition uint64) []byte {
	p := make(parts, 0, 256)
	p.text(runKeyDomain)
	p.add(scope[:]...)
	p.text(runID)
	p.number(transition)
	return p
}

// derivedInput is the input of the key a generation uses in one domain.
func derivedInput(domain string, scope sum32, generation uint64) []byte {
	p := make(parts, 0, 128)
	p.text(domain)
	p.add(scope[:]...)
	p.number(generation)
	return p
}

// authenticate is HMAC-SHA256.
func authenticate(key, message []byte) (mac sum32) {
	h := hmac.New(sha256.New, key)
	h.Write(message)
	h.Sum(mac[:0])
	return mac
}

// equal compares in constant time. Nothing else compares MACs, keys or scopes.
func equal(a, b sum32) bool { return hmac.Equal(a[:], b[:]) }

// signClaim computes the MAC of a claim under a generation's key. The keys it
// derives on the way are cleared.
func signClaim(key []byte, scope sum32, generation, transition uint64, h header) sum32 {
	run := authenticate(key, derivedInput(runKeyDomain, scope, generation))
	sub := authenticate(run[:], runKeyInput(scope, h.runID, transition))
	mac := authenticate(sub[:], claimInput(scope, generation, h))
	clear(run[:])
	clear(sub[:])
	return mac
}
