// Command tmbench measures append-only logs and embedded stores against the
// raw limits of the file system they run on.
//
//	tmbench run    measures, and writes the results as JSON
//	tmbench plot   draws them as SVG
//	tmbench table  writes them as Markdown, also into a document
//	tmbench check  judges the bars the project holds itself to
//	tmbench list   shows peers and workloads
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/bench/internal/workload"
)

// command is one of the words after the program's name.
type command struct {
	name  string
	about string
	run   func(ctx context.Context, args []string, out io.Writer) error
}

func commands() []command {
	return []command{
		{"run", "measure, and write the results as JSON", runCommand},
		{"plot", "draw the results as SVG", plotCommand},
		{"table", "write the results as Markdown", tableCommand},
		{"check", "judge the bars the project holds itself to", checkCommand},
		{"list", "show peers and workloads", listCommand},
	}
}

// errUsage ends the program with status 2; what was wrong is already printed.
var errUsage = errors.New("usage")

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	err := dispatch(ctx, os.Args[1:])
	cancel()
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "tmbench:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == workload.ChildArg {
		return workload.RunChild(args[1], os.Stdin, os.Stdout)
	}
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(ctx, args[1:], os.Stdout)
			}
		}
	}
	fmt.Fprintln(os.Stderr, "usage: tmbench command [flags]")
	for _, c := range commands() {
		fmt.Fprintf(os.Stderr, "  %-6s %s\n", c.name, c.about)
	}
	return errUsage
}

// parse reads the flags of a command, which takes no other arguments.
func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		fmt.Fprintf(flags.Output(), "unexpected argument %q\n", flags.Arg(0))
		err = errUsage
	}
	if err != nil {
		return errUsage
	}
	return nil
}
