package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newGet(a *app) *cobra.Command {
	var o printFlags
	cmd := &cobra.Command{
		Use:     "get LOG NAMESPACE KEY",
		Short:   "Print the record that a key leads to",
		GroupID: groupRead,
		Long: `Print the payload of the last record that was added under a key, on a line of
its own, or with --json as cat does. It reads a few blocks of the keyed index
and one commit, however long the log is, and works beside a live writer. An
empty NAMESPACE is a namespace, too.

A key that was never used ends with exit code 5, and so does one whose record
was dropped; standard error tells which. If the index cannot tell, the exit code
is 1, and 'reindex' mends it.`,
		Example: `  tidemark get run.log orders order-17
  tidemark get run.log orders order-17 --json`,
		Args: logAndKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withReader(args[0], pagelog.ReaderOptions{AllowAnyFileSystem: a.anyFileSystem}, func(r *pagelog.Reader) error {
				return get(cmd, r, args[1], args[2], &o)
			})
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON line with revision, record, payload or payload_base64, and keys")
	return cmd
}

// logAndKey is the operands of get.
func logAndKey(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return oneLog(cmd, args)
	case 1:
		return usagef("NAMESPACE and KEY are missing: say what to look for")
	case 2:
		return usagef("KEY is missing: %q is taken for the namespace", args[1])
	case 3:
		return nil
	}
	return usagef("one key at a time: %q is one too many", args[3])
}

// get prints the record under a key.
func get(cmd *cobra.Command, r *pagelog.Reader, namespace, key string, o *printFlags) error {
	revision, record, err := r.Lookup([]byte(namespace), []byte(key))
	if errors.Is(err, pagelog.ErrTooLarge) || errors.Is(err, pagelog.ErrEmpty) {
		return usagef("%v", err)
	}
	if err != nil {
		return err
	}
	var g pagelog.Group
	if err := r.At(revision, &g); err != nil {
		return err
	}
	p := newPrinter(cmd.OutOrStdout(), o, r.Cursor(g.Commit))
	index := uint32(0)
	keys, _ := keysOf(&g)
	for one, err := range g.Records() {
		if index == record {
			if err != nil {
				return fmt.Errorf("revision %d, record %d: %w", revision, record, err)
			}
			if err := p.record(recordLine{Revision: revision, Record: int(record), Keys: keys[record]}, one.Data); err != nil {
				return err
			}
			break
		}
		index++
	}
	return p.end(cmd.ErrOrStderr(), nil)
}
