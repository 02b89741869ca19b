package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newVerify(a *app) *cobra.Command {
	var asJSON bool
	workers := count{low: 0, top: 1024}
	cmd := &cobra.Command{
		Use:     "verify LOG",
		Short:   "Check every byte of a log",
		GroupID: groupCheck,
		Long: `Check every byte of a log and list what is not as it should be, with its place.
It only reads, on all processors, in bounded memory, and may run beside a live
writer. After damage it goes on and finds what is sound behind it.

A log is sound, exit code 0, when nothing that was acknowledged or derived from
it is damaged. A torn end (a write that a crash cut before it was acknowledged),
one bad slot and one bad copy of the identity are sound, and listed. Anything
else is corrupt, exit code 1.

Each finding has a class: corrupt, torn, bridged (damage that only hit derived
bytes; history goes on behind it) or note. With --json the report is one object
with a list of findings {offset, page, revision, structure, what, class}.`,
		Example: `  tidemark verify run.log
  tidemark verify run.log --json`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd, args[0], asJSON, pagelog.VerifyOptions{Workers: int(workers.n), AllowAnyFileSystem: a.anyFileSystem})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	cmd.Flags().Var(&workers, "workers", "stretches of the file to check at the same time; 0 means one per processor")
	return cmd
}

func verify(cmd *cobra.Command, path string, asJSON bool, o pagelog.VerifyOptions) error {
	bar := newBar(cmd.ErrOrStderr())
	o.Progress = bar.show
	began := time.Now()
	report, err := pagelog.Verify(context.Background(), path, o)
	bar.clear()
	if err != nil {
		return err
	}
	if asJSON {
		if report.Findings == nil {
			report.Findings = []pagelog.Finding{}
		}
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	} else {
		err = printReport(cmd.OutOrStdout(), &report, time.Since(began))
	}
	if report.Corrupt {
		err = errors.Join(err, fmt.Errorf("%s: %w: %s", path, errDamaged, firstDamage(&report)))
	}
	return err
}

// firstDamage names the first finding that makes the log corrupt.
func firstDamage(r *pagelog.VerifyReport) string {
	for _, f := range r.Findings {
		if f.Class == pagelog.ClassCorrupt || f.Class == pagelog.ClassBridged {
			return placeOf(&f)
		}
	}
	return fmt.Sprintf("behind revision %d, at offset %d", r.Head, r.End)
}

func placeOf(f *pagelog.Finding) string {
	at := fmt.Sprintf("offset %d (page %d)", f.Offset, f.Page)
	if f.Revision != 0 {
		at += fmt.Sprintf(", revision %d", f.Revision)
	}
	return fmt.Sprintf("%s: %s: %s", at, f.Structure, f.What)
}

// printReport shows a report to a person.
func printReport(w io.Writer, r *pagelog.VerifyReport, took time.Duration) error {
	var b strings.Builder
	printFindings(&b, r)
	verdict := "sound"
	switch {
	case r.Corrupt:
		verdict = fmt.Sprintf("corrupt, the sound prefix ends with revision %d at offset %d", r.Head, r.End)
	case r.Torn:
		verdict = "sound, with a torn end that was never acknowledged"
	}
	fmt.Fprintf(&b, "%s: head %d, %s with %s hold, %s checked in %s\n",
		verdict, r.Head, countText(r.Groups, "commit"), countText(r.Records, "record"), bytesText(r.FileSize), took.Round(time.Millisecond))
	_, err := io.WriteString(w, b.String())
	return err
}

// printFindings lists what is not as it should be.
func printFindings(b *strings.Builder, r *pagelog.VerifyReport) {
	for _, f := range r.Findings {
		fmt.Fprintf(b, "%-8s %s\n", f.Class, placeOf(&f))
	}
	if r.Uncounted > 0 {
		fmt.Fprintf(b, "and %s more\n", countText(uint64(r.Uncounted), "finding"))
	}
}

// countText shows how many there are to a person.
func countText(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// bytesText shows a number of bytes to a person.
func bytesText(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// bar shows progress on a terminal, and nowhere else.
type bar struct {
	w     io.Writer // nil: nobody looks
	began time.Time
	last  time.Time
}

func newBar(w io.Writer) *bar {
	b := &bar{began: time.Now()}
	if isTerminal(w) {
		b.w = w
	}
	return b
}

// show draws the bar, ten times a second at most. A run shorter than half a
// second shows none.
func (b *bar) show(done, total int64) {
	now := time.Now()
	if b.w == nil || total <= 0 || now.Sub(b.began) < 500*time.Millisecond || now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last = now
	const width = 40
	full := int(min(done, total) * width / total)
	rate := float64(done) / now.Sub(b.began).Seconds()
	fmt.Fprintf(b.w, "\r[%s%s] %3d %%  %s of %s  %s/s \x1b[K",
		strings.Repeat("=", full), strings.Repeat(" ", width-full), done*100/total, bytesText(done), bytesText(total), bytesText(int64(rate)))
}

// clear takes the bar off the terminal.
func (b *bar) clear() {
	if b.w != nil && !b.last.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
