// Command faultd is what the fault tests need in a process of its own: a server
// must not share a process with the users of its file system, and a filter must
// be put on by the process it is for.
//
//	faultd exec NUMBER... -- PROGRAM ARGUMENT...    run a program below a filter
//	faultd disk DIR MEGABYTES                       serve a disk that records
//	faultd lossy DIR                                serve a file system that loses
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/tidemark-log/tidemark/faults/internal/blockdev"
	"github.com/tidemark-log/tidemark/faults/internal/lossyfs"
	"github.com/tidemark-log/tidemark/faults/internal/notif"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "faultd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("no verb")
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "exec":
		return notif.Exec(rest)
	case "disk":
		if len(rest) != 2 {
			return errors.New("disk takes a folder and a size")
		}
		mb, err := strconv.ParseInt(rest[1], 10, 32)
		if err != nil {
			return err
		}
		return blockdev.Serve(rest[0], mb, os.Stdin, os.Stdout)
	case "lossy":
		if len(rest) != 1 {
			return errors.New("lossy takes a folder")
		}
		return lossyfs.Serve(rest[0], os.Stdin, os.Stdout)
	default:
		return fmt.Errorf("no verb %q", verb)
	}
}
