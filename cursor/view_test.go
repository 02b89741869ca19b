package cursor

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestViewOf_Golden pins the derivation: an identity that changed would turn
// every cursor issued before into one of another view. The values come from a
// second implementation.
func TestViewOf_Golden(t *testing.T) {
	every := make([]uint16, math.MaxUint16+1)
	for i := range every {
		every[i] = uint16(i)
	}
	for _, tc := range []struct {
		name      string
		kinds     []uint16
		namespace string
		want      ViewID
	}{
		{"everything", nil, "", 0},
		{"everything, empty set", []uint16{}, "", 0},
		// 7469646d61726b2076696577203100 | 01000000 | 0100 |
		{"a kind", []uint16{1}, "", 0x9c2df2bdc1058951},
		// … | 01000000 | 0201 |
		{"a kind of two bytes", []uint16{0x102}, "", 0xb73e78a69c98373c},
		// … | 02000000 | 0100 0201 |
		{"two kinds", []uint16{1, 0x102}, "", 0xbba629d00a497655},
		{"two kinds, otherwise", []uint16{0x102, 1, 0x102}, "", 0xbba629d00a497655},
		// … | 00000000 | | 6f7264657273
		{"a namespace", nil, "orders", 0xf16eb2ce51dcdf43},
		// … | 02000000 | 0100 0201 | 6f7264657273
		{"two kinds in a namespace", []uint16{1, 0x102}, "orders", 0xa39cda2481b647db},
		// … | 00000100 | 0000 0100 … ffff |
		{"every kind by name", every, "", 0xe9130b2345926761},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ViewOf(tc.kinds, tc.namespace); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestViewOf_OneIdentityPerSet_L48(t *testing.T) {
	kinds := rapid.SliceOfN(rapid.Uint16Range(0, 3), 0, 6)
	namespace := rapid.StringMatching(`[\x00ab]{0,2}`)
	set := func(kinds []uint16) []uint16 {
		return slices.Compact(slices.Sorted(slices.Values(kinds)))
	}
	rapid.Check(t, func(t *rapid.T) {
		k1, n1 := kinds.Draw(t, "kinds"), namespace.Draw(t, "namespace")
		k2, n2 := kinds.Draw(t, "other kinds"), namespace.Draw(t, "other namespace")
		before := slices.Clone(k1)
		same := n1 == n2 && slices.Equal(set(k1), set(k2))
		if got := ViewOf(k1, n1) == ViewOf(k2, n2); got != same {
			t.Fatalf("identities equal: %v, views equal: %v", got, same)
		}
		if !slices.Equal(k1, before) {
			t.Fatalf("the caller's kinds became %v", k1)
		}
		if zero := ViewOf(k1, n1) == 0; zero != (len(k1) == 0 && n1 == "") {
			t.Fatalf("identity is zero: %v", zero)
		}
	})
}
