package cursor

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	counted = LogID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	random  = LogID{0x9f, 0x86, 0xd0, 0x81, 0x88, 0x4c, 0x7d, 0x65, 0x9a, 0x2f, 0xea, 0xa0, 0xc5, 0x5a, 0xd0, 0x15}
	ones    = LogID([]byte(strings.Repeat("\xff", 16)))
)

// golden holds tokens made by a second implementation of the format. The
// layout is
//
//	tm 1 _ | log ID, 16 bytes | revision | digest | view | check
//
// in fives of bits, so fields begin inside a character: the log ID ends in the
// 26th character, which also holds the first two bits of the revision.
var golden = []struct {
	name  string
	c     Cursor
	token string
}{
	{
		// 00 × 40 | check 7b0c2f37
		"zero",
		Cursor{},
		"tm1_0000000000000000000000000000000000000000000000000000000000000000fc62ydr",
	},
	{
		// 000102…0f | 0000000000000001 | 0123456789abcdef | 00 × 8 | check f9b727bc
		"first commit",
		Cursor{Position{counted, 1}, 0x0123456789abcdef, 0},
		"tm1_000g40r40m30e209185gr38e1w000000000000814d2pf2dbsqqg000000000000z6vjff0",
	},
	{
		// 9f86…15 | 0000000000001000 | fedcba9876543210 | a39cda2481b647db | check 703826bf
		"in a view",
		Cursor{Position{random, 4096}, 0xfedcba9876543210, 0xa39cda2481b647db},
		"tm1_ky3d10c89hypb6hfxagcappg2m0000000001007yvjx9gxjm688a776t4j0vchyve0w2dfr",
	},
	{
		// 9f86…15 | 00 × 24 | check 2265ed3c
		"before the first commit",
		Cursor{Position{random, 0}, 0, 0},
		"tm1_ky3d10c89hypb6hfxagcappg2m0000000000000000000000000000000000000049jytf0",
	},
	{
		// ff × 40 | check 7e3d5f62
		"all ones",
		Cursor{Position{ones, math.MaxUint64}, math.MaxUint64, math.MaxUint64},
		"tm1_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzfrynyrg",
	},
}

func TestToken_Golden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			if got := g.c.String(); got != g.token {
				t.Errorf("String:\n got %s\nwant %s", got, g.token)
			}
			got, err := Parse(g.token)
			if got != g.c || err != nil {
				t.Errorf("Parse: got %+v, %v; want %+v", got, err, g.c)
			}
		})
	}
}

func TestToken_RoundTripsAndIsPlain_L49(t *testing.T) {
	plain := regexp.MustCompile(`^tm1_[0-9a-z]{71}$`)
	rapid.Check(t, func(t *rapid.T) {
		c := drawCursor(t, "cursor")
		token := c.String()
		if !plain.MatchString(token) || strings.ContainsAny(token[4:], "ilou") || len(token) >= 120 {
			t.Fatalf("token %q is not plain", token)
		}
		got, err := Parse(token)
		if got != c || err != nil {
			t.Fatalf("Parse(%s) = %+v, %v; want %+v", token, got, err, c)
		}
		if again := got.String(); again != token {
			t.Fatalf("printed again: %s, first %s", again, token)
		}
	})
}

func TestToken_SortsByRevision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawCursor(t, "a"), drawCursor(t, "b")
		b.Log = a.Log
		if a.Revision != b.Revision && (a.Revision < b.Revision) != (a.String() < b.String()) {
			t.Fatalf("revisions %d and %d, tokens %s and %s", a.Revision, b.Revision, a, b)
		}
	})
}

// TestToken_EverySlip_L49 changes, drops, adds and exchanges every character
// of several tokens, with every byte there is. Case changes are among them.
func TestToken_EverySlip_L49(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			slips := 0
			for damaged := range everySlip(g.token) {
				if c, err := Parse(damaged); err != ErrMalformed || c != (Cursor{}) {
					t.Errorf("Parse(%q) = %+v, %v; want ErrMalformed", damaged, c, err)
				}
				slips++
			}
			if atLeast := len(g.token) * 2 * 255; slips < atLeast {
				t.Errorf("only %d slips tried, want at least %d", slips, atLeast)
			}
		})
	}
}

// everySlip yields each text that is one slip away from s, and never s.
func everySlip(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		try := func(damaged string) bool { return damaged == s || yield(damaged) }
		for i := range len(s) + 1 {
			for b := range 256 {
				char := string([]byte{byte(b)})
				if !try(s[:i]+char+s[i:]) || i < len(s) && !try(s[:i]+char+s[i+1:]) {
					return
				}
			}
			if i < len(s) && !try(s[:i]+s[i+1:]) {
				return
			}
			if i+1 < len(s) && !try(s[:i]+s[i+1:i+2]+s[i:i+1]+s[i+2:]) {
				return
			}
		}
	}
}

// The next three tests hold for every token, not for some: how a CRC changes
// depends on which bits change and on how many bytes follow, and on nothing
// else in the text.

func TestToken_CheckSeesEveryChange_L49(t *testing.T) {
	const covered = len(tokenPrefix+tokenVersion+tokenSep) + bodyLen
	check := func(text []byte) string { return seal(string(text))[covered:] }
	before := check(make([]byte, covered))
	for i := range covered {
		for delta := 1; delta < 256; delta++ {
			changed := make([]byte, covered)
			changed[i] = byte(delta)
			if check(changed) == before {
				t.Fatalf("change %02x of character %d is not seen", delta, i)
			}
			if i+1 == covered {
				continue
			}
			changed[i+1] = byte(delta)
			if check(changed) == before {
				t.Fatalf("exchange %02x of characters %d and %d is not seen", delta, i, i+1)
			}
		}
	}
}

func TestToken_CheckSeesExchangeWithItself_L49(t *testing.T) {
	check := func(last byte) string { return seal(string(last))[1:] }
	for _, a := range []byte(alphabet) {
		for _, b := range []byte(alphabet) {
			// Had the last character been b, and the check begun with a, the
			// exchange would go unseen if the rest of the check were the same.
			if a != b && check(a)[1:] == check(b)[1:] {
				t.Errorf("exchange of %c with first character %c of the check is not seen", a, b)
			}
		}
	}
}

func TestToken_CheckSeesEveryVersionChange_L49(t *testing.T) {
	seen := map[string]int{}
	for version := range 1000 {
		text := tokenPrefix + strconv.Itoa(version) + tokenSep
		check := strings.TrimPrefix(seal(text), text)
		if other, dup := seen[check]; dup {
			t.Errorf("before the body, versions %d and %d have the same check", other, version)
		}
		seen[check] = version
	}
}

func TestToken_RandomSlip_L49(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := drawCursor(t, "cursor").String()
		i := rapid.IntRange(0, len(token)-1).Draw(t, "place")
		with := rapid.OneOf(
			rapid.StringMatching(`[0-9a-zA-Z_]?`), // a plain character or none
			rapid.Map(rapid.Rune(), func(r rune) string { return string(r) }),
		).Draw(t, "with")
		skip := rapid.IntRange(0, 1).Draw(t, "skip")
		damaged := token[:i] + with + token[i+skip:]
		if damaged == token {
			return
		}
		if c, err := Parse(damaged); err != ErrMalformed || c != (Cursor{}) {
			t.Fatalf("Parse(%q) = %+v, %v; want ErrMalformed", damaged, c, err)
		}
	})
}

func TestParse_Errors_L48(t *testing.T) {
	body := strings.Repeat("0", bodyLen)
	for _, tc := range []struct {
		name  string
		token string
		want  error
	}{
		{"empty", "", ErrMalformed},
		{"prefix alone", "tm1_", ErrMalformed},
		{"no separator", seal("tm1" + body), ErrMalformed},
		{"other prefix", seal("tn1_" + body), ErrMalformed},
		{"no version", seal("tm_" + body), ErrMalformed},
		{"version zero", seal("tm0_" + body), ErrMalformed},
		{"version with leading zero", seal("tm01_" + body), ErrMalformed},
		{"version with sign", seal("tm+1_" + body), ErrMalformed},
		{"version of letters", seal("tma_" + body), ErrMalformed},
		{"version of four digits", seal("tm1000_" + body), ErrMalformed},
		{"upper case", strings.ToUpper(seal("tm1_" + body)), ErrMalformed},
		{"space before", " " + seal("tm1_"+body), ErrMalformed},
		{"line end after", seal("tm1_"+body) + "\n", ErrMalformed},
		{"line end inside", seal("tm1_" + body[:63] + "\n"), ErrMalformed},
		{"padding", seal("tm1_" + body[:63] + "="), ErrMalformed},
		{"letter outside the alphabet", seal("tm1_" + body[:63] + "o"), ErrMalformed},
		{"second separator", seal("tm1_" + body[:63] + "_"), ErrMalformed},
		{"no body", seal("tm1_"), ErrMalformed},
		{"body too short", seal("tm1_" + body[1:]), ErrMalformed},
		{"body too long", seal("tm1_" + body + "0"), ErrMalformed},
		{"body eight too long", seal("tm1_" + body + "00000000"), ErrMalformed},
		{"only a check", seal("tm1_")[4:], ErrMalformed},
		{"check cut", "tm2_" + body[:6], ErrMalformed},
		{"spare bits of the check", strings.TrimSuffix(seal("tm1_"+body), "r") + "s", ErrMalformed},

		// tm 2 _ | the body of "first commit" | check 52f0202f
		{
			"next version", "tm2_000g40r40m30e209185gr38e1w000000000000814d2pf2dbsqqg000000000000abr20br",
			ErrVersion,
		},
		{
			"next version, damaged", "tm2_000g40r40m30e209185gr38e1w000000000000814d2pf2dbsqqg000000000000z6vjff0",
			ErrMalformed,
		},
		{"next version, no body", "tm2_xdr3f4r", ErrVersion},
		{"last version, longest", "tm999_" + strings.Repeat("0", 106) + "cvwxqm0", ErrVersion},
		{"last version, longer", seal("tm999_" + strings.Repeat("0", 107)), ErrMalformed},
		{"huge", seal("tm2_" + strings.Repeat("0", 1<<20)), ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if c, err := Parse(tc.token); err != tc.want || c != (Cursor{}) {
				t.Errorf("Parse(%.130q) = %+v, %v; want %v", tc.token, c, err, tc.want)
			}
		})
	}
}

func TestText_JSON(t *testing.T) {
	type document struct {
		At     Cursor
		Log    LogID
		Digest Digest
	}
	want := document{golden[2].c, random, 0xfedcba9876543210}
	const text = `{"At":"tm1_ky3d10c89hypb6hfxagcappg2m0000000001007yvjx9gxjm688a776t4j0vchyve0w2dfr",` +
		`"Log":"9f86d081884c7d659a2feaa0c55ad015","Digest":"fedcba9876543210"}`
	if got, err := json.Marshal(want); string(got) != text || err != nil {
		t.Errorf("Marshal:\n got %s, %v\nwant %s", got, err, text)
	}
	var got document
	if err := json.Unmarshal([]byte(text), &got); got != want || err != nil {
		t.Errorf("Unmarshal: got %+v, %v; want %+v", got, err, want)
	}
}

func TestText_ErrorLeavesValue(t *testing.T) {
	c, id, d := golden[2].c, random, Digest(7)
	bad := []byte("tm1_")
	if err := c.UnmarshalText(bad); err != ErrMalformed || c != golden[2].c {
		t.Errorf("Cursor: %+v, %v", c, err)
	}
	if err := id.UnmarshalText(bad); err != ErrMalformed || id != random {
		t.Errorf("LogID: %v, %v", id, err)
	}
	if err := d.UnmarshalText(bad); err != ErrMalformed || d != 7 {
		t.Errorf("Digest: %v, %v", d, err)
	}
}

func TestHex_OneTextPerValue_L49(t *testing.T) {
	if got, want := counted.String(), "000102030405060708090a0b0c0d0e0f"; got != want {
		t.Errorf("LogID: got %s, want %s", got, want)
	}
	if got, want := Digest(0x1a).String(), "000000000000001a"; got != want {
		t.Errorf("Digest: got %s, want %s", got, want)
	}
	if got, want := ViewID(0x1a).String(), "000000000000001a"; got != want {
		t.Errorf("ViewID: got %s, want %s", got, want)
	}

	text := random.String()
	if got, err := ParseLogID(text); got != random || err != nil {
		t.Errorf("ParseLogID(%s) = %v, %v", text, got, err)
	}
	for _, length := range []int{0, 2, 30, 34, 64} {
		if id, err := ParseLogID(strings.Repeat("1", length)); err != ErrMalformed || id != (LogID{}) {
			t.Errorf("ParseLogID of %d digits: %v, %v", length, id, err)
		}
	}
	for slip := range everySlip(text) {
		id, err := ParseLogID(slip)
		isHex := len(slip) == len(text) && strings.Trim(slip, "0123456789abcdef") == ""
		if isHex && (err != nil || id.String() != slip) || !isHex && (err != ErrMalformed || id != LogID{}) {
			t.Errorf("ParseLogID(%q) = %v, %v", slip, id, err)
		}
	}
}

// FuzzParse feeds any text as it comes, and once more under a right check, so
// that what lies behind the check is reached as well.
func FuzzParse(f *testing.F) {
	for _, g := range golden {
		f.Add(g.token)
		f.Add(g.token[:len(g.token)-checkLen])
	}
	f.Add("tm2_000g40r40m30e2")
	f.Add("tm999_")
	f.Add("tm01_\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, token := range []string{text, seal(text)} {
			c, err := Parse(token)
			switch {
			case err == nil && c.String() != token:
				t.Errorf("Parse(%q) prints as %q", token, c)
			case err != nil && (c != Cursor{}):
				t.Errorf("Parse(%q) = %+v beside %v", token, c, err)
			case err != nil && !slices.Contains([]error{ErrMalformed, ErrVersion}, err):
				t.Errorf("Parse(%q): %v", token, err)
			case errors.Is(err, ErrVersion) && strings.HasPrefix(token, "tm1_"):
				t.Errorf("Parse(%q): %v for a known version", token, err)
			}
		}
	})
}

func drawCursor(t *rapid.T, label string) Cursor {
	id := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label+" log")
	return Cursor{
		Position: Position{Log: LogID(id), Revision: rapid.Uint64().Draw(t, label+" revision")},
		Digest:   Digest(rapid.Uint64().Draw(t, label+" digest")),
		View:     ViewID(rapid.Uint64().Draw(t, label+" view")),
	}
}
