package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newCopy(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "copy LOG NEW",
		Short:   "Make a sound copy of a log, also of one in use",
		GroupID: groupWrite,
		Long: `Copy a log up to its durable end, also while it is written. The copy has the
same identity and, up to there, the same bytes; every one of them is checked
before the copy gets its name. A crash leaves no copy or a whole one. A name
that is taken is left alone, whatever it is.

Both files then go on from the same history under the same identity: keep one of
them for reading. A damaged log is not copied, exit code 1: see 'salvage'.`,
		Example: `  tidemark copy run.log backup.log
  tidemark copy run.log other.log --json`,
		Args: logAndNew,
		RunE: func(cmd *cobra.Command, args []string) error {
			bar := newBar(cmd.ErrOrStderr())
			var report pagelog.CopyReport
			err := interruptible(args[1]+" was not made", func(ctx context.Context) (err error) {
				report, err = pagelog.Copy(ctx, args[0], args[1], pagelog.CopyOptions{Progress: bar.show, AllowAnyFileSystem: a.anyFileSystem})
				return err
			})
			bar.clear()
			if err != nil {
				return taken(err)
			}
			return printCopy(cmd.OutOrStdout(), args[1], &report, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func printCopy(w io.Writer, path string, r *pagelog.CopyReport, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, "copied to %s: head %d, digest %v, ends at byte %d, %s written; log %v\n",
		path, r.Head, r.Digest, r.End, bytesText(r.Bytes), r.LogID)
	return err
}

// logAndNew are the operands of verbs that make a log of another one.
func logAndNew(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("LOG and NEW are missing: name the file of the log, and that of the new one")
	case 1:
		return usagef("NEW is missing: name the file that %s makes", cmd.Name())
	case 2:
		return nil
	}
	return usagef("one LOG and one NEW: %q is one too many", args[2])
}

// taken tells a name that is taken from other errors.
func taken(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", errTaken, err)
	}
	return err
}

// interruptible runs what leaves nothing behind when its context ends, and ends
// that when a signal asks for it. left is what is then told.
func interruptible(left string, do func(ctx context.Context) error) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case s := <-signals:
		signal.Stop(signals) // the next one kills
		stop(nil)
		if err := <-done; err == nil || !errors.Is(err, context.Canceled) {
			return err // it was faster
		}
		number, _ := s.(syscall.Signal)
		return &interruptedError{signal: number, left: left}
	}
}
