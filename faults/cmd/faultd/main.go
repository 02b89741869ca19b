// Command faultd is what the fault tests need in a process of its own: a server
// must not share a process with the users of its file system, and a filter must
// be put on by the process it is for.
//
//	faultd exec NUMBER... -- PROGRAM ARGUMENT...    run a program below a filter
package main

import (
	"errors"
	"fmt"
	"os"

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
	default:
		return fmt.Errorf("no verb %q", verb)
	}
}
