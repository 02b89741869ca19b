package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/authority"
	"github.com/tidemark-log/tidemark/snapshot"
)

var errRunDamaged = errors.New("the run's record cannot be believed")

// runInfo is a run as list and inspect print it. The keys are part of the
// contract.
type runInfo struct {
	Run          string `json:"run,omitempty"` // not known of a damaged run
	File         string `json:"file"`
	Phase        string `json:"phase"`
	Held         bool   `json:"held"` // its owner lives
	Transition   uint64 `json:"transition"`
	Key          uint64 `json:"key"`
	LastSequence uint64 `json:"last_sequence"`
	Log          string `json:"log,omitempty"` // where its log was at the last claim
}

func runOf(i authority.Info) runInfo {
	r := runInfo{
		Run: i.RunID, File: i.File, Phase: i.Phase.String(), Held: i.Held, Transition: i.Generation,
		Key: i.KeyGeneration, LastSequence: i.LastSequence,
	}
	if i.Log.Revision > 0 {
		r.Log = i.Log.String()
	}
	return r
}

func (r *runInfo) line() string {
	name, owner := r.Run, "no owner"
	if name == "" {
		name = "(file run-" + r.File + ")"
	}
	if r.Held {
		owner = "held"
	}
	return fmt.Sprintf("%-9s  %-8s  key %d  transition %d  last sequence %d  %s\n", r.Phase, owner, r.Key, r.Transition, r.LastSequence, name)
}

func newAuthorityList(a *app) *cobra.Command {
	v := &authorityVerb{app: a}
	return v.flags(&cobra.Command{
		Use:   "list",
		Short: "List the keys and all runs",
		Long: `List the generations of the key and every run, each verified in full, in the
order of their files. A damaged run is listed, too, and makes the exit code 1;
it is ended with 'resolve'.`,
		Example: `  tidemark authority list
  tidemark authority list --json`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.with(authority.Options{ReadOnly: true}, func(ctx context.Context, a *authority.Authority) error {
				return v.list(ctx, a, cmd.OutOrStdout())
			})
		},
	})
}

func (v *authorityVerb) list(ctx context.Context, a *authority.Authority, w io.Writer) error {
	keys, err := generationsOf(ctx, a)
	if err != nil {
		return err
	}
	runs, damaged := []runInfo{}, 0
	for info, err := range a.Runs(ctx) {
		if err != nil {
			return err
		}
		if info.Phase == authority.Damaged {
			damaged++
		}
		runs = append(runs, runOf(info))
	}
	if v.asJSON {
		err = json.NewEncoder(w).Encode(struct {
			Keys []keyInfo `json:"keys"`
			Runs []runInfo `json:"runs"`
		}{keys, runs})
	} else {
		var b strings.Builder
		for _, k := range keys {
			fmt.Fprintf(&b, "key %d: %s\n", k.Generation, k.Status)
		}
		for i := range runs {
			b.WriteString(runs[i].line())
		}
		_, err = io.WriteString(w, b.String())
	}
	if damaged > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d runs: %w", damaged, len(runs), errRunDamaged))
	}
	return err
}

func newAuthorityInspect(a *app) *cobra.Command {
	v := &authorityVerb{app: a}
	return v.flags(&cobra.Command{
		Use:   "inspect RUN",
		Short: "Show where one run stands",
		Long: `Show what the record of a run says: its phase, whether its owner lives, the key
that signed, the last sequence it claimed and where its log was then. A damaged
run ends with exit code 1, one that was never started with exit code 4.`,
		Example: `  tidemark authority inspect run-17
  tidemark authority inspect run-17 --json`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.with(authority.Options{ReadOnly: true}, func(ctx context.Context, a *authority.Authority) error {
				info, err := a.Inspect(ctx, args[0])
				if errors.Is(err, authority.ErrState) {
					return fmt.Errorf("run %q was never started: %w", args[0], err)
				}
				if err != nil {
					return fmt.Errorf("run %q: %w", args[0], err)
				}
				r := runOf(info)
				err = v.print(cmd.OutOrStdout(), r, "%s", r.line()+logLine(r.Log))
				if info.Phase == authority.Damaged {
					err = errors.Join(err, fmt.Errorf("run %q: %w", args[0], errRunDamaged))
				}
				return err
			})
		},
	})
}

func logLine(log string) string {
	if log == "" {
		return ""
	}
	return "its log was at " + log + "\n"
}

// envelopeInfo is what verify prints of an envelope that it believes.
type envelopeInfo struct {
	Run          string `json:"run"`
	Lifecycle    string `json:"lifecycle"`
	LastSequence uint64 `json:"last_sequence"`
	Key          uint64 `json:"key"`
	Scope        string `json:"scope"`
	Payload      string `json:"payload_sha256"`
	Definition   string `json:"definition"`
	Model        string `json:"model"`
	Turns        uint32 `json:"turns"`
	TurnLimit    uint32 `json:"turn_limit"`
	Messages     int    `json:"messages"`
}

func newAuthorityVerify(a *app) *cobra.Command {
	v := &authorityVerb{app: a}
	return v.flags(&cobra.Command{
		Use:   "verify ENVELOPE",
		Short: "Ask whether an envelope is to be believed",
		Long: `Read an envelope from a file, or from standard input if it is '-', and ask the
authority for it. An envelope that was signed here and is still the run's newest
claim is shown, suspended or terminal; the conversation in it is not. What does
not have the form of an envelope is exit code 2; anything else, whatever the
reason, is exit code 1.`,
		Example: `  tidemark authority verify run.envelope
  tidemark authority verify - --json < run.envelope`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one ENVELOPE, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := readEnvelope(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return v.with(authority.Options{ReadOnly: true}, func(ctx context.Context, a *authority.Authority) error {
				s, err := a.Verify(ctx, e)
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				state, claim, digest := s.State(), e.Claim(), s.Digest()
				i := envelopeInfo{
					state.RunID, state.Lifecycle.String(), state.LastSequence, claim.Generation,
					hex.EncodeToString(claim.Scope[:]), hex.EncodeToString(digest[:]),
					state.Definition, state.Model, state.Turns, state.TurnLimit, len(state.Messages),
				}
				return v.print(cmd.OutOrStdout(), i, "genuine: run %q, %s at sequence %d, signed by key %d; %s, turn %d of %d\n",
					i.Run, i.Lifecycle, i.LastSequence, i.Key, countText(uint64(i.Messages), "message"), i.Turns, i.TurnLimit)
			})
		},
	})
}

// readEnvelope reads a file that is at most as large as an envelope can be.
func readEnvelope(path string, in io.Reader) (e authority.Envelope, err error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return e, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in = f
	}
	const most = snapshot.MaxSize + 4096
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return e, err
	}
	if e, err = authority.ParseEnvelope(b); err != nil {
		return e, fmt.Errorf("%s: %w: it does not have the form of one", path, errEnvelope)
	}
	return e, nil
}
