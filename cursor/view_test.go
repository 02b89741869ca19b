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
	many := make([]uint32, math.MaxUint16+1)
	for i := range many {
		many[i] = uint32(i)
	}
	for _, tc := range []struct {
		name      string
		kinds     []uint32
		namespace string
		want      ViewID
	}{
		{"everything", nil, "", 0},
		{"everything, empty set", []uint32{}, "", 0},
		// 7469646d61726b2076696577203100 | 01000000 | 01000000 |
		{"a kind", []uint32{1}, "", 0xfb363217dc5f5145},
		// … | 01000000 | 03020100 |
		{"a kind of three bytes", []uint32{0x10203}, "", 0xa15ecfa0538d888a},
		// … | 01000000 | ffffffff |
		{"the last kind", []uint32{math.MaxUint32}, "", 0xee23ff7e0427b3b4},
		// … | 02000000 | 01000000 03020100 |
		{"two kinds", []uint32{1, 0x10203}, "", 0xd02d7eb0a120fd02},
		{"two kinds, otherwise", []uint32{0x10203, 1, 0x10203}, "", 0xd02d7eb0a120fd02},
		// … | 00000000 | | 6f7264657273
		{"a namespace", nil, "orders", 0xf16eb2ce51dcdf43},
		// … | 02000000 | 01000000 03020100 | 6f7264657273
		{"two kinds in a namespace", []uint32{1, 0x10203}, "orders", 0xedf0d19fbc69b918},
		// … | 00000100 | 00000000 01000000 … ffff0000 |
		{"65,536 kinds", many, "", 0xae615a1079a2b3c3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ViewOf(tc.kinds, tc.namespace); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestViewOf_OneIdentityPerSet_L48(t *testing.T) {
	kinds := rapid.SliceOfN(rapid.Uint32Range(0, 3), 0, 6)
	namespace := rapid.StringMatching(`[\x00ab]{0,2}`)
	set := func(kinds []uint32) []uint32 {
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
