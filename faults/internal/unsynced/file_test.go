package unsynced

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestFile(t *testing.T) {
	f := Durable([]byte("old old"))
	f.Write([]byte("new"), 0)
	f.Write([]byte("!"), 9)
	if got := f.Drop(); string(got) != "old old" {
		t.Errorf("nothing landed: %q", got)
	}
	if got := f.Keep(); string(got) != "new old\x00\x00!" {
		t.Errorf("all landed: %q", got)
	}
	f.FailSync()
	f.Sync()
	if got := f.Keep(); string(got) != "old old" {
		t.Errorf("a sync after one that failed carried %q", got)
	}
	f.Write([]byte("new"), 4)
	f.Resize(6)
	f.Sync()
	if got := f.Drop(); string(got) != "old ne" || f.Pending() != 0 {
		t.Errorf("synced: %q, %d pending", got, f.Pending())
	}
}

// TestSome shows that sectors of the file land each for itself, and whole.
func TestSome(t *testing.T) {
	f := &File{}
	f.Write(bytes.Repeat([]byte("x"), 4*sectorSize), 100)
	kinds := map[byte]int{}
	for seed := range uint64(50) {
		b := f.Some(rand.New(rand.NewPCG(seed, 0)))
		for s := sectorSize; s+sectorSize <= len(b); s += sectorSize {
			if b[s] != b[s+sectorSize-1] {
				t.Fatalf("seed %d: the sector at %d is torn", seed, s)
			}
			kinds[b[s]]++
		}
	}
	if kinds[0] == 0 || kinds['x'] == 0 {
		t.Errorf("sectors: %v", kinds)
	}
}

func TestClone(t *testing.T) {
	f := Durable([]byte("a"))
	c := f.Clone()
	c.Write([]byte("b"), 0)
	c.Sync()
	if string(f.Drop()) != "a" {
		t.Error("a clone wrote into its model")
	}
}
