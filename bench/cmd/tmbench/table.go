package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/tidemark-log/tidemark/bench/internal/page"
	"github.com/tidemark-log/tidemark/bench/internal/report"
	"github.com/tidemark-log/tidemark/bench/internal/workload"
)

func tableCommand(_ context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	in := flags.String("in", resultsFile, "`file` with the results")
	doc := flags.String("doc", "", "`document` to put them into, between its marks; empty: print them")
	plots := flags.String("plots", "../bench/results/plots", "`path` of the pictures as seen from the document")
	if err := parse(flags, args); err != nil {
		return err
	}
	results, err := report.Read(*in)
	if err != nil {
		return err
	}
	titles := page.Titles{"W9": "device bytes per durable commit"}
	for _, w := range workload.All() {
		titles[w.Name] = w.Title
	}
	text := page.Write(results, titles, *plots)
	if *doc == "" {
		_, err := fmt.Fprint(out, text)
		return err
	}
	old, err := os.ReadFile(*doc)
	if err != nil {
		return err
	}
	updated, err := page.Insert(string(old), text)
	if err != nil {
		return fmt.Errorf("%s: %w", *doc, err)
	}
	return os.WriteFile(*doc, []byte(updated), 0o644)
}
