package blockdev

import (
	"bytes"
	"testing"
)

func write(t *testing.T, d *Disk, off int64, c byte, n int) {
	t.Helper()
	if _, err := d.WriteAt(bytes.Repeat([]byte{c}, n), off); err != nil {
		t.Fatal(err)
	}
}

func at(t *testing.T, d *Disk, off int64) byte {
	t.Helper()
	b := make([]byte, 1)
	if _, err := d.ReadAt(b, off); err != nil {
		t.Fatal(err)
	}
	return b[0]
}

// TestImage walks through the cuts of a short history: what was flushed is
// always there, what was not may be gone, kept or in part.
func TestImage(t *testing.T) {
	d := New(1 << 20)
	write(t, d, 5000, 'a', 10)
	d.Mark()
	write(t, d, 5000, 'b', 10)        // record 1
	if err := d.Flush(); err != nil { // record 2
		t.Fatal(err)
	}
	write(t, d, 5000, 'c', 4096) // record 3
	for _, tc := range []struct {
		cut  int
		mode Mode
		want byte
	}{
		{0, Keep, 'a'},
		{1, Drop, 'a'},
		{1, Keep, 'b'},
		{2, Drop, 'b'},
		{3, Drop, 'b'},
		{3, Keep, 'c'},
	} {
		image, err := d.Image(tc.cut, 1, tc.mode)
		if err != nil {
			t.Fatal(err)
		}
		if got := at(t, image, 5000); got != tc.want {
			t.Errorf("cut %d, %s: %q, want %q", tc.cut, tc.mode, got, tc.want)
		}
	}
	if d.Position() != 3 {
		t.Errorf("position %d", d.Position())
	}
	if _, err := d.Image(4, 1, Drop); err == nil {
		t.Error("a cut in the future was made")
	}
}

// TestImage_Torn shows that sectors land one by one and each of them whole.
func TestImage_Torn(t *testing.T) {
	d := New(1 << 20)
	d.Mark()
	write(t, d, 0, 'x', 8*sectorSize)
	write(t, d, 65536, 'x', 8*sectorSize)
	kinds := map[byte]int{}
	for seed := range uint64(20) {
		image, err := d.Image(2, seed, Rand)
		if err != nil {
			t.Fatal(err)
		}
		for s := range int64(8) {
			first, last := at(t, image, s*sectorSize), at(t, image, (s+1)*sectorSize-1)
			if first != last {
				t.Fatalf("seed %d: sector %d is torn", seed, s)
			}
			kinds[first]++
		}
		for _, w := range whole {
			if at(t, image, w.from) != at(t, image, w.to-1) {
				t.Fatalf("seed %d: the superblock is torn", seed)
			}
		}
	}
	if kinds['x'] < 40 || kinds[0] < 40 {
		t.Errorf("sectors: %v", kinds)
	}
}

// TestImage_Apart shows that writing an image changes neither the disk nor the
// next image.
func TestImage_Apart(t *testing.T) {
	d := New(1 << 20)
	write(t, d, 0, 'a', 1)
	d.Mark()
	image, err := d.Image(0, 0, Keep)
	if err != nil {
		t.Fatal(err)
	}
	write(t, image, 0, 'z', 1)
	if at(t, d, 0) != 'a' {
		t.Error("the image wrote through")
	}
	if next, err := d.Image(0, 0, Keep); err != nil || at(t, next, 0) != 'a' {
		t.Error("the image wrote into the next one")
	}
}

func TestFail(t *testing.T) {
	d := New(1 << 20)
	d.FailWrite(2)
	write(t, d, 0, 'a', 1)
	if _, err := d.WriteAt([]byte{'b'}, 0); err == nil {
		t.Error("the second write did not fail")
	}
	write(t, d, 0, 'c', 1)
	d.FailFlush(1)
	if d.Flush() == nil || d.Flush() != nil {
		t.Error("not the first flush, and only that, failed")
	}
}
