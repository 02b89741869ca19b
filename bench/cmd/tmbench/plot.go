package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/bench/internal/figure"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

func plotCommand(_ context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("plot", flag.ContinueOnError)
	in := flags.String("in", resultsFile, "`file` with the results")
	dir := flags.String("out", "results/plots", "`directory` for the pictures")
	if err := parse(flags, args); err != nil {
		return err
	}
	doc, err := report.Read(*in)
	if err != nil {
		return err
	}
	names, err := figure.DrawAll(doc, *dir)
	fmt.Fprintf(out, "%d pictures in %s\n", len(names), *dir)
	return err
}
