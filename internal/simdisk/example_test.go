package simdisk_test

import (
	"errors"
	"fmt"

	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// A program adds a line to a file and syncs it. At every crash point the test
// runs the recovery, here only a look at the file, on every disk that a power
// cut may leave.
func Example() {
	fs := simdisk.New()
	fs.WriteFile("log", []byte("old "))
	acked := "old "
	fs.Before(func(op simdisk.Op) {
		stats := fs.EachImage(simdisk.ImageOptions{Mode: simdisk.Both}, func(img *simdisk.FS) bool {
			got, err := img.ReadFile("log")
			if err != nil || len(got) < len(acked) || string(got[:len(acked)]) != acked {
				fmt.Printf("lost: %q, %v\n%s", got, err, img.Log())
			}
			return true
		})
		fmt.Printf("%v: %d images\n", op, stats.Distinct)
	})

	f, err := fs.Dir().Open("log", disk.ReadWrite)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = f.WriteAt([]byte("new "), 4)
	if err := errors.Join(err, f.Sync()); err != nil {
		fmt.Println(err)
		return
	}
	acked = "old new "
	if err := f.Truncate(8); err != nil {
		fmt.Println(err)
	}
	// Output:
	// #1 write log [4, 8): 1 images
	// #2 sync log: 3 images
	// #2 sync (inside) log: 3 images
	// #3 truncate log to 8: 1 images
}
