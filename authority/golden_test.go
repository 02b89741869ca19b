package authority

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/snapshot"
)

// The golden values below were computed without this package, by this script
// (bash, xxd, openssl). The key is 32 times "k", the scope 32 times "s", the key
// generation 3, the transition generation 5, the run "run-1", the last sequence
// 42, the payload "payload":
//
//	n(){ printf '%016x' "$1"; }                    # a number of 8 bytes
//	p(){ printf '%016x%s' $((${#1}/2)) "$1"; }     # a part: its length, its bytes
//	t(){ printf %s "$1" | xxd -p | tr -d '\n'; }   # a text
//	h(){ printf %s "$2" | xxd -r -p | openssl dgst -sha256 -mac HMAC -macopt hexkey:$1 | sed 's/.* //'; }
//	key=$(printf 'k%.0s' $(seq 32) | xxd -p | tr -d '\n')
//	scope=$(printf 's%.0s' $(seq 32) | xxd -p | tr -d '\n')
//	payload=$(printf %s payload | openssl dgst -sha256 | sed 's/.* //')
//	D=$(p $(t tidemark.run-authority-run-key/v1))$(p $scope)
//	run=$(h $key $D$(p $(n 3)))
//	sub=$(h $run $D$(p $(t run-1))$(p $(n 5)))
//	for l in 1 2 3 4; do                           # the lifecycles
//	  h $sub $(p $(t spice.agent.run-authority/v1))$(p $scope)$(p $(n 3))$(p $(t tidemark.snapshot/v1))$(p $(t run-1))$(p $(n 42))$(p 0000000$l)$(p $payload)
//	done
//	h $key $(p $(t tidemark.run-authority-record/v1))$(p $scope)$(p $(n 3))   # the record key
var goldenClaims = map[snapshot.Lifecycle]string{
	snapshot.Suspended: "315b80a0fabacb6f1481d4d2a81ef3262055293407e7641aa03789c1dfdaee0e",
	snapshot.Completed: "b0bac64aa2f1ad2252f96a83404aced558f24e262fb2fdc9fd26b95a80e30b98",
	snapshot.Failed:    "377113bc31cbaee1680b7ac6748ca385ce3b59366010336d5df84ca1f7dee936",
	snapshot.Cancelled: "69307923ec5fc769b57f66ab484ccfce701580b11be90beb65e580b30b29328c",
}

const (
	goldenRecordKey = "6d65e99088a173393029a05552b6e58e1ac4e619b8b45dee67d357cfaf3ece78"
	// HMAC under the record key over the 480 bytes of goldenRecord.
	goldenRecordMAC = "4f845e11666bc641299acbb2b955f7cd65d4c255950faaa355f194c2af72a359"
	// SHA-256 of the 240 bytes of goldenRing.
	goldenRingSum = "8700f5ec24a3558ff05d1ba3ba43e851bba7c9b72a2ee20294b3759c8e10f58e"
	// HMAC under 32 times "w" over part(witness domain) and part(48 bytes).
	goldenWitnessMAC = "e3c1a98a96848220ef766b4310b43f89696bd8fbb10f384576bb4f9f142e8612"
)

func filled(c byte) (s sum32) { return sum32(bytes.Repeat([]byte{c}, 32)) }

func unhex(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(parts, ""))
	must(t, err)
	return b
}

func asciiHex(s string) string { return hex.EncodeToString([]byte(s)) }

func goldenHeader(l snapshot.Lifecycle) header {
	return header{
		format: "tidemark.snapshot/v1", runID: "run-1", sequence: 42, lifecycle: l,
		payload: sha256.Sum256([]byte("payload")),
	}
}

func TestR50_GoldenClaims(t *testing.T) {
	key := filled('k')
	for l, want := range goldenClaims {
		mac := signClaim(key[:], filled('s'), 3, 5, goldenHeader(l))
		if got := hex.EncodeToString(mac[:]); got != want {
			t.Errorf("%v: got %s, want %s", l, got, want)
		}
	}
}

// The bytes under the MAC, in the order the wire contract fixes.
func TestR50_MACInput(t *testing.T) {
	payload := sha256.Sum256([]byte("payload"))
	want := unhex(t,
		"000000000000001c", asciiHex("spice.agent.run-authority/v1"),
		"0000000000000020", strings.Repeat("73", 32),
		"0000000000000008", "0000000000000003",
		"0000000000000014", asciiHex("tidemark.snapshot/v1"),
		"0000000000000005", asciiHex("run-1"),
		"0000000000000008", "000000000000002a",
		"0000000000000004", "00000001",
		"0000000000000020", hex.EncodeToString(payload[:]),
	)
	if got := claimInput(filled('s'), 3, goldenHeader(snapshot.Suspended)); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// Every component of the MAC input and of the subkey changes the claim.
func TestR54_EverythingIsBound(t *testing.T) {
	key, scope := filled('k'), filled('s')
	base := signClaim(key[:], scope, 3, 5, goldenHeader(1))
	h := goldenHeader
	for name, mac := range map[string]sum32{
		"scope":      signClaim(key[:], filled('x'), 3, 5, h(1)),
		"key":        signClaim(scope[:], scope, 3, 5, h(1)),
		"generation": signClaim(key[:], scope, 4, 5, h(1)),
		"transition": signClaim(key[:], scope, 3, 6, h(1)),
		"lifecycle":  signClaim(key[:], scope, 3, 5, h(2)),
		"format":     signClaim(key[:], scope, 3, 5, func() header { x := h(1); x.format = "f"; return x }()),
		"run":        signClaim(key[:], scope, 3, 5, func() header { x := h(1); x.runID = "run-2"; return x }()),
		"sequence":   signClaim(key[:], scope, 3, 5, func() header { x := h(1); x.sequence++; return x }()),
		"payload":    signClaim(key[:], scope, 3, 5, func() header { x := h(1); x.payload[0] ^= 1; return x }()),
	} {
		if equal(mac, base) {
			t.Errorf("%s is not bound", name)
		}
	}
}

func goldenRecordValue() record {
	return record{
		phase: Suspended, slot: 9, sequence: 10, transition: 5, generation: 3,
		scope: filled('s'), nonce: [16]byte(bytes.Repeat([]byte("n"), 16)), previous: filled('p'), runID: "run-1",
		claim: recordClaim{
			lifecycle: snapshot.Suspended, sequence: 42, generation: 3, format: snapshot.Format,
			payload: sha256.Sum256([]byte("payload")), mac: signClaim(bytes.Repeat([]byte("k"), 32), filled('s'), 3, 5, goldenHeader(1)),
		},
		position: position{logID: [16]byte(bytes.Repeat([]byte("L"), 16)), revision: 42, digest: 7},
	}
}

func goldenRecord(t testing.TB) []byte {
	payload := sha256.Sum256([]byte("payload"))
	return unhex(t,
		asciiHex("TMAUTHRC"), "0001", "02", "09", // magic, version, phase suspended, slot
		"00000001",                                                                   // lifecycle
		"000000000000000a",                                                           // record sequence
		"0000000000000005",                                                           // transition generation
		"0000000000000003",                                                           // key generation
		strings.Repeat("73", 32), strings.Repeat("6e", 16), strings.Repeat("70", 32), // scope, nonce, previous MAC
		"05", asciiHex("run-1"), strings.Repeat("00", 123+7), // run ID, zero
		"000000000000002a", "0000000000000003", // claim: last sequence, key generation
		"14", asciiHex("tidemark.snapshot/v1"), strings.Repeat("00", 11), // format
		hex.EncodeToString(payload[:]), goldenClaims[snapshot.Suspended],
		strings.Repeat("4c", 16), "000000000000002a", "0000000000000007", // bound log position
		strings.Repeat("00", 80),
		goldenRecordMAC,
	)
}

func TestR104_GoldenRecord(t *testing.T) {
	r := goldenRecordValue()
	got := r.seal(unhex(t, goldenRecordKey))
	if want := goldenRecord(t); !bytes.Equal(got[:], want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	back, ok := parseRecord(got[:])
	if !ok || back != r {
		t.Errorf("read back %+v", back)
	}
	next := goldenRecord(t)
	next[9] = 2
	if _, ok := parseRecord(next); ok {
		t.Error("version + 1 accepted")
	}
}

func goldenRing(t testing.TB) []byte {
	return unhex(t,
		asciiHex("TMAUTHKR"), "00000001", "00000003", // magic, version, count
		strings.Repeat("73", 32), strings.Repeat("77", 32), // scope, witness key
		"000000000000004d", "0000000000000063", // directory inode, birth
		"0000000000000001", "03", strings.Repeat("00", 7), strings.Repeat("00", 32), // retired
		"0000000000000002", "02", strings.Repeat("00", 7), strings.Repeat("6a", 32), // verify only
		"0000000000000003", "01", strings.Repeat("00", 7), strings.Repeat("6b", 32), // primary
		goldenRingSum,
	)
}

func TestR107_GoldenKeyring(t *testing.T) {
	r, err := newRing(goldenRing(t), securedir.Stat{})
	must(t, err)
	if r.scope != filled('s') || r.primary() != 3 || !r.at(securedir.Stat{Inode: 77, Birth: 99}) || r.at(securedir.Stat{Inode: 77, Birth: 98}) {
		t.Errorf("%+v", r)
	}
	for generation, want := range map[uint64]string{0: "", 1: "", 2: "j", 3: "k", 4: ""} {
		key, ok := r.key(generation)
		if ok != (want != "") || (ok && string(key) != strings.Repeat(want, 32)) {
			t.Errorf("generation %d: %q %v", generation, key, ok)
		}
	}
	rec := goldenRecordValue()
	sealed, ok := r.sealRecord(&rec)
	if !ok || !bytes.Equal(sealed[:], goldenRecord(t)) {
		t.Error("the keyring seals another record")
	}
}

func TestR108_GoldenWitness(t *testing.T) {
	w := witness{sequence: 10, nonce: [16]byte(bytes.Repeat([]byte("n"), 16)), inode: 77, birth: 99}
	key := filled('w')
	s := w.encode(key[:])
	want := unhex(t, asciiHex("TMAUTHWT"), "000000000000000a", strings.Repeat("6e", 16), "000000000000004d", "0000000000000063",
		goldenWitnessMAC, strings.Repeat("00", 432))
	if !bytes.Equal(s[:], want) {
		t.Errorf("got  %x\nwant %x", s, want)
	}
	back, ok := parseWitness(s[:], key[:])
	if !ok || back != w {
		t.Errorf("read back %+v %v", back, ok)
	}
	for i := range 80 * 8 {
		bad := s
		bad[i/8] ^= 1 << (i % 8)
		if _, ok := parseWitness(bad[:], key[:]); ok {
			t.Fatalf("bit %d flipped and believed", i)
		}
	}
}

func TestR49_GoldenEnvelope(t *testing.T) {
	h := goldenHeader(snapshot.Suspended)
	e := Envelope{
		head: h, payload: []byte("payload"),
		claim: Claim{Scope: filled('s'), Generation: 3, MAC: sum32(unhex(t, goldenClaims[snapshot.Suspended]))},
	}
	want := unhex(t, asciiHex("TMAUTHEN"), "00000001",
		"00000014", asciiHex("tidemark.snapshot/v1"), "00000005", asciiHex("run-1"),
		"000000000000002a", "00000001", hex.EncodeToString(h.payload[:]),
		strings.Repeat("73", 32), "0000000000000003", goldenClaims[snapshot.Suspended],
		"00000007", asciiHex("payload"))
	if got := e.Encoding(); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	back, err := ParseEnvelope(want)
	must(t, err)
	if !bytes.Equal(back.Encoding(), want) || back.RunID() != "run-1" || back.LastSequence() != 42 || back.Lifecycle() != snapshot.Suspended {
		t.Error("read back differently")
	}
	for i := range want {
		if _, err := ParseEnvelope(want[:i]); err == nil {
			t.Fatalf("cut at %d accepted", i)
		}
	}
	if _, err := ParseEnvelope(append(bytes.Clone(want), 0)); err == nil {
		t.Error("R51: an unknown field at the end accepted")
	}
	claim := back.Claim()
	claim.MAC[0] ^= 1
	if back.Claim() == claim {
		t.Error("R61: the claim is shared")
	}
}
