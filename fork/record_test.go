package fork

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

var update = flag.Bool("update", false, "write the golden files again")

func sample() *Record {
	return &Record{Source: cursor.LogID{0xA1, 15: 0xAF}, Revision: 41, Digest: 0xD16E57, End: 0x7A10}
}

// TestRecord_RoundTrip: one encoding, and none other is taken.
func TestRecord_RoundTrip(t *testing.T) {
	b := sample().Encode()
	r, err := DecodeRecord(b)
	if err != nil || r != *sample() || len(b) != RecordSize {
		t.Fatalf("%+v, %v", r, err)
	}
	for n := range len(b) {
		if _, err := DecodeRecord(b[:n]); err == nil {
			t.Errorf("%d bytes of %d are taken", n, len(b))
		}
	}
	for bit := range 8 * len(b) {
		bad := bytes.Clone(b)
		bad[bit/8] ^= 1 << (bit % 8)
		if got, err := DecodeRecord(bad); err == nil && !bytes.Equal(got.Encode(), bad) {
			t.Errorf("bit %d: %+v", bit, got)
		}
	}
	newer := bytes.Clone(b)
	newer[0]++
	if _, err := DecodeRecord(newer); !errors.Is(err, frame.ErrUnsupported) {
		t.Errorf("version 2: %v", err)
	}
	if _, err := DecodeRecord(make([]byte, RecordSize)); !errors.Is(err, ErrRecord) { // L3
		t.Errorf("zeros: %v", err)
	}
}

// TestRecord_Golden_L7 holds the bytes, their description, and docs/FORMAT.md
// against each other.
func TestRecord_Golden_L7(t *testing.T) {
	text, err := os.ReadFile("../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "### Fork record, 48 bytes")
	section, _, _ = strings.Cut(section, "\n#")
	b, at := sample().Encode(), 0
	var out strings.Builder
	out.WriteString("# fork record\n")
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
	const path = "testdata/record.hex"
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != out.String() {
		t.Errorf("%v\n%s", err, out.String())
	}
}
