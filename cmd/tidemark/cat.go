package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newCat(a *app) *cobra.Command {
	var o printFlags
	cmd := &cobra.Command{
		Use:     "cat LOG",
		Short:   "Print the records, oldest first",
		GroupID: groupRead,
		Long: `Print the payload of each record on a line of its own, from the oldest to the
last complete commit. It works beside a live writer. Payloads that hold line
feeds or are no text are told apart with --json: payload is there if the bytes
are valid UTF-8, else payload_base64; record counts from 0 in each commit. Keys
are records, too, so that the count may leave numbers out: they are not printed
on their own, but with --json in keys of the record they lead to. The fork
record of a fork and the opaque records of 'salvage' are printed, and are no
text.

At damage the sound records before it are printed, standard error says where
and why, and the exit code is 1.

--after takes a revision, or a cursor that cat, tail or stat printed. A cursor
of another log or another history is refused with exit code 5, and so is a
revision that the log does not have.`,
		Example: `  tidemark cat run.log
  tidemark cat run.log --after 41 --limit 10
  tidemark cat run.log --json --cursor`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withReader(args[0], pagelog.ReaderOptions{AllowAnyFileSystem: a.anyFileSystem}, func(r *pagelog.Reader) error {
				return printFrom(cmd, r, &o)
			})
		},
	}
	o.register(cmd)
	return cmd
}

// withReader opens a log for reading and names it in the error.
func withReader(path string, o pagelog.ReaderOptions, do func(r *pagelog.Reader) error) error {
	r, err := pagelog.OpenReader(path, o)
	if err != nil {
		return err
	}
	if err := errors.Join(do(r), r.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// printFrom prints the records after the position, up to the head.
func printFrom(cmd *cobra.Command, r *pagelog.Reader, o *printFlags) error {
	p, err := startPrinter(cmd, r, o)
	if err != nil {
		return err
	}
	return p.end(cmd.ErrOrStderr(), printCommits(r, p))
}

func startPrinter(cmd *cobra.Command, r *pagelog.Reader, o *printFlags) (*printer, error) {
	pos, err := parsePosition(o.after)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("after") && !pos.set {
		return nil, usagef("--after: it is empty; name a revision or a cursor, or leave it out")
	}
	at, err := pos.resolve(r)
	if err != nil {
		return nil, err
	}
	return newPrinter(cmd.OutOrStdout(), o, at), nil
}

// printCommits prints what is complete behind the printer's cursor.
func printCommits(r *pagelog.Reader, p *printer) error {
	if p.full() {
		return nil
	}
	for g, err := range r.Commits(p.at.Revision) {
		if err != nil {
			return err
		}
		if err := p.commit(r, g); err != nil || p.full() {
			return err
		}
	}
	return nil
}
