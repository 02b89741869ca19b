package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/pagelog"
)

func newCheckpoint(a *app) *cobra.Command {
	var blob string
	var asJSON bool
	at := count{low: 0, top: 1<<63 - 1}
	cmd := &cobra.Command{
		Use:     "checkpoint LOG",
		Short:   "Write a checkpoint, with the state of the host if it is given",
		GroupID: groupWrite,
		Long: `Write a checkpoint, from which later openings and replays can start. It adds
nothing to the history: losing it costs time, never content. Checkpoints are
also written on their own, about every mebibyte.

With --blob the checkpoint keeps the state of the host, up to 16 MiB: what the
host needs to go on from the commit that --at names, instead of replaying what
is before it. Without --blob the last state that was kept stays the last one.`,
		Example: `  tidemark checkpoint run.log
  tidemark checkpoint run.log --blob input.txt --at 41
  date | tidemark checkpoint run.log --blob - --json`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at.set && blob == "" {
				return usagef("--at: it says which commit a state belongs to; add --blob")
			}
			if cmd.Flags().Changed("blob") && blob == "" {
				return usagef("--blob: it is empty; name a file, or - for standard input")
			}
			data, err := readBlob(blob, cmd.InOrStdin())
			if err != nil {
				return err
			}
			made, err := writeCheckpoint(args[0], data, &at, pagelog.Options{AllowAnyFileSystem: a.anyFileSystem})
			if err != nil {
				return err
			}
			return made.print(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().StringVar(&blob, "blob", "", "the state to keep: a `FILE`, or - for standard input")
	cmd.Flags().Var(&at, "at", "the revision whose state it is; the head, if not set")
	cmd.Flags().Lookup("at").DefValue = "0" // not set: the head
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// readBlob reads the state, which is nil if there is none to keep.
func readBlob(name string, in io.Reader) ([]byte, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
	default:
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--blob: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, checkpoint.MaxBlob+1))
	if err != nil {
		return nil, fmt.Errorf("--blob: %w", err)
	}
	return append([]byte{}, data...), nil
}

// checkpointMade is what checkpoint prints. The keys are part of the contract.
type checkpointMade struct {
	Revision uint64 `json:"revision"`   // whose state was kept; without a blob, the head
	Blob     *int   `json:"blob_bytes"` // nil: none was given
	Head     uint64 `json:"head"`
}

func writeCheckpoint(path string, data []byte, at *count, o pagelog.Options) (made checkpointMade, err error) {
	log, err := pagelog.Open(path, o)
	if err != nil {
		return made, err
	}
	made.Head = log.Head().Revision
	made.Revision = made.Head
	if at.set {
		made.Revision = uint64(at.n)
	}
	if data != nil {
		size := len(data)
		made.Blob = &size
	}
	err = log.Checkpoint(context.Background(), made.Revision, data)
	if err = errors.Join(err, log.Close()); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return made, err
}

func (c *checkpointMade) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(c)
	}
	state := "no state of its own"
	if c.Blob != nil {
		state = countText(uint64(*c.Blob), "byte") + " of state"
	}
	_, err := fmt.Fprintf(w, "checkpoint at revision %d with %s, head %d\n", c.Revision, state, c.Head)
	return err
}
