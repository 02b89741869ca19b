package cursor_test

import (
	"errors"
	"fmt"

	"github.com/tidemark-log/tidemark/cursor"
)

// A reader keeps the token of the last commit it was given. When it comes
// back, the log it finds may have gone on, or been restored from a copy.
func Example() {
	log := cursor.LogID{0xca, 0xfe}
	digests := []cursor.Digest{0, 0x11, 0x22, 0x33} // by revision
	describe := func() cursor.History {
		return cursor.History{
			Log:      log,
			Oldest:   1,
			Head:     uint64(len(digests) - 1),
			DigestAt: func(revision uint64) (cursor.Digest, error) { return digests[revision], nil },
		}
	}

	orders := cursor.ViewOf([]uint32{3, 4}, "orders")
	token := cursor.Cursor{
		Position: cursor.Position{Log: log, Revision: 3},
		Digest:   digests[3],
		View:     orders,
	}.String()
	fmt.Println(token)

	c, err := cursor.Parse(token)
	if err != nil {
		fmt.Println(err)
		return
	}
	digests = append(digests, 0x44) // the log went on
	fmt.Println("went on:", cursor.Check(c, orders, describe()))

	digests = append(digests[:3], 0x55, 0x66) // restored at 2, then written
	fmt.Println("restored:", cursor.Check(c, orders, describe()))

	digests = digests[:3] // restored at 2
	fmt.Println("just restored:", cursor.Check(c, orders, describe()))

	dropped := describe()
	dropped.Oldest, dropped.Head = 9, 12 // commits 1 to 8 were dropped
	var compacted *cursor.CompactedError
	if errors.As(cursor.Check(c, orders, dropped), &compacted) {
		fmt.Println("dropped: the oldest left is", compacted.Oldest)
	}
	// Output:
	// tm1_sbz00000000000000000000000000000000000r00000000000sy17y7d5hbnbcztra4z28
	// went on: <nil>
	// restored: cursor: the log took another history
	// just restored: cursor: beyond the head of the log
	// dropped: the oldest left is 9
}
