package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/workload"
)

func listCommand(_ context.Context, args []string, out io.Writer) error {
	if err := parse(flag.NewFlagSet("list", flag.ContinueOnError), args); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "peer\tkind\tversion\tsums\tatomic\tindex\treads\tnote")
	for _, p := range describe(bench.Peers()) {
		t := p.Traits
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%t\t%t\t%s\t%s\n", p.Name, p.Kind, p.Version, t.Sums, t.Atomic, t.Index, t.Reads, t.Note)
	}
	fmt.Fprintln(w, "\nworkload\ttitle")
	for _, x := range workload.All() {
		fmt.Fprintf(w, "%s\t%s\n", x.Name, x.Title)
	}
	return w.Flush()
}
