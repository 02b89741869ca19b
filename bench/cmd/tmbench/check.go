package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tidemark-log/tidemark/bench/internal/report"
)

// resultsFile is where results are kept, from the module's directory.
const resultsFile = "results/latest.json"

func checkCommand(_ context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	in := flags.String("in", resultsFile, "`file` with the results")
	if err := parse(flags, args); err != nil {
		return err
	}
	doc, err := report.Read(*in)
	if err != nil {
		return err
	}
	if doc.Quick {
		fmt.Fprintln(out, "These results are a first look. Judge a full run.")
	}
	return printJudgements(out, doc.Judge())
}

// printJudgements prints a table and fails if a bar is missed, or if one was
// not measured and nothing says why.
func printJudgements(out io.Writer, all []report.Judgement) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "workload\tvariant\ton\tpeer\tmetric\tagainst\twant\tgot\t95 % interval\tverdict")
	counts := map[report.Verdict]int{}
	unexplained := 0
	for _, j := range all {
		counts[j.Verdict]++
		got, interval := "-", j.Reason
		if j.Verdict != report.Unmeasured {
			got, interval = fmt.Sprintf("%.3g", j.Got.Median), fmt.Sprintf("%.3g to %.3g", j.Got.Low, j.Got.High)
		} else if j.Reason == report.NotRun {
			unexplained++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", j.Workload, j.Variant, j.FileSystem,
			j.Peer, j.Metric, j.Base, j.Want, got, interval, j.Verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d met, %d close, %d missed, %d unmeasured\n", counts[report.Met], counts[report.Close],
		counts[report.Missed], counts[report.Unmeasured])
	if n := counts[report.Missed]; n > 0 {
		return fmt.Errorf("%d bars missed", n)
	}
	if unexplained > 0 {
		return errors.New("not every bar was measured")
	}
	return nil
}
