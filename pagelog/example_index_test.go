package pagelog_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tidemark-log/tidemark/pagelog"
)

// Index records under keys, and find the last one of a key.
func Example_index() {
	dir, err := os.MkdirTemp("", "index")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := pagelog.Create(filepath.Join(dir, "run.log"), pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	orders := []byte("orders")
	for _, state := range []string{"placed", "paid", "shipped"} {
		var b pagelog.Batch
		b.Append([]byte(state))
		b.Key(orders, []byte("order-17"))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			log.Fatal(err)
		}
	}

	revision, record, err := l.Lookup(orders, []byte("order-17"))
	if err != nil {
		log.Fatal(err)
	}
	var g pagelog.Group
	if err := l.At(revision, &g); err != nil {
		log.Fatal(err)
	}
	index := uint32(0)
	for r, err := range g.Records() {
		if err != nil {
			log.Fatal(err)
		}
		if index == record {
			fmt.Printf("revision %d, record %d: %s\n", revision, record, r.Data)
		}
		index++
	}
	_, _, err = l.Lookup(orders, []byte("order-18"))
	fmt.Println(errors.Is(err, pagelog.ErrNoKey))
	// Output:
	// revision 3, record 0: shipped
	// true
}
