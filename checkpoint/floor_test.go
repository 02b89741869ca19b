package checkpoint

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
)

func sampleFloor() *Floor {
	return &Floor{
		Place: frame.Place{Offset: 0x7A10, Revision: 41, Digest: 0xD16E57}, Generation: 3,
		Features: frame.Features{Compat: frame.FeatureKeys, ReadOnly: 2, Incompat: 4},
	}
}

// TestFloor_RoundTrip: one encoding, and none other is taken.
func TestFloor_RoundTrip(t *testing.T) {
	b := sampleFloor().Encode()
	f, err := DecodeFloor(b)
	if err != nil || f != *sampleFloor() || len(b) != FloorSize {
		t.Fatalf("%+v, %v", f, err)
	}
	for n := range len(b) {
		if _, err := DecodeFloor(b[:n]); err == nil {
			t.Errorf("%d bytes of %d are taken", n, len(b))
		}
	}
	for bit := range 8 * len(b) {
		bad := bytes.Clone(b)
		bad[bit/8] ^= 1 << (bit % 8)
		if got, err := DecodeFloor(bad); err == nil && !bytes.Equal(got.Encode(), bad) {
			t.Errorf("bit %d: %+v", bit, got)
		}
	}
	newer := bytes.Clone(b)
	newer[0]++
	if _, err := DecodeFloor(newer); !errors.Is(err, frame.ErrUnsupported) {
		t.Errorf("version 2: %v", err)
	}
}

// TestFloor_Golden_L7 holds the bytes, their description, and docs/FORMAT.md
// against each other.
func TestFloor_Golden_L7(t *testing.T) {
	text, err := os.ReadFile("../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "### Floor, 64 bytes")
	section, _, _ = strings.Cut(section, "\n#")
	b, at := sampleFloor().Encode(), 0
	var out strings.Builder
	out.WriteString("# retention floor\n")
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| (.+) \|$`).FindAllStringSubmatch(section, -1) {
		off, _ := strconv.Atoi(m[1])
		size, _ := strconv.Atoi(m[2])
		if off != at || at+size > len(b) {
			t.Fatalf("FORMAT.md: a gap before %q", m[0])
		}
		out.WriteString(fmt.Sprintf("%5d: %s # %s\n", off, hex.EncodeToString(b[off:off+size]), m[3]))
		at += size
	}
	if at != len(b) {
		t.Fatalf("FORMAT.md describes %d bytes of %d", at, len(b))
	}
	const path = "testdata/floor.hex"
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != out.String() {
		t.Errorf("%v\n%s", err, out.String())
	}
}
