package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/authority"
	"github.com/tidemark-log/tidemark/snapshot"
)

// The verbs of the authority: authority_read.go has those that only look.

const groupAuthority = "authority"

func newAuthority(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "authority VERB",
		Short:   "Look after the private directory that says who may run a run",
		GroupID: groupCheck,
		Long: `Look after an authority: the private directory with the keys that sign suspended
runs, and the record of every run. Programs make and use it; these verbs are for
the person who looks after it. list, inspect and verify take no lock and change
nothing, whatever else is going on.

Without --dir it is the user's own one, in the state directory of the system.`,
		Example: `  tidemark authority init
  tidemark authority list
  tidemark authority verify run.envelope`,
		Args: noSuchVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddGroup(&cobra.Group{ID: groupAuthority, Title: "Verbs"})
	cmd.AddCommand(newAuthorityInit(a), newAuthorityList(a), newAuthorityInspect(a), newAuthorityVerify(a),
		newAuthorityResolve(a), newAuthorityRotate(a), newAuthorityRetire(a))
	return cmd
}

// authorityVerb is what the verbs share.
type authorityVerb struct {
	app    *app
	dir    string
	asJSON bool
}

// flags adds the flags that every verb has.
func (v *authorityVerb) flags(cmd *cobra.Command) *cobra.Command {
	cmd.GroupID = groupAuthority
	cmd.Flags().StringVar(&v.dir, "dir", "", "the `DIRECTORY` of the authority, as an absolute path")
	cmd.Flags().BoolVar(&v.asJSON, "json", false, "print one JSON object")
	return cmd
}

// lockPatience bounds how long a verb waits for other processes.
const lockPatience = 10 * time.Second

// with opens the authority for one verb. The path is in what is said of errors.
func (v *authorityVerb) with(o authority.Options, do func(context.Context, *authority.Authority) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	o.AnyFileSystem = v.app.anyFileSystem
	dir := v.dir
	if dir != "" && !filepath.IsAbs(dir) {
		return usagef("--dir: %q is not an absolute path", dir)
	}
	if len(dir) > 1 { // a shell that completes a name puts one behind it
		dir = strings.TrimSuffix(dir, string(filepath.Separator))
	}
	a, err := authority.Open(ctx, dir, o)
	if err == nil {
		err = errors.Join(do(ctx, a), a.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", v.place(), err)
	}
	return nil
}

func (v *authorityVerb) place() string {
	if v.dir == "" {
		return "the user's authority"
	}
	return v.dir
}

// print shows an object to a program or a text to a person.
func (v *authorityVerb) print(w io.Writer, object any, format string, args ...any) error {
	if v.asJSON {
		return json.NewEncoder(w).Encode(object)
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

// keyInfo is a key generation. The JSON keys of this and what follows are part
// of the contract.
type keyInfo struct {
	Generation uint64 `json:"generation"`
	Status     string `json:"status"` // primary, verify-only, retired
}

func generationsOf(ctx context.Context, a *authority.Authority) ([]keyInfo, error) {
	keys, err := a.Keys(ctx)
	out := []keyInfo{}
	for _, k := range keys {
		out = append(out, keyInfo{k.Generation, k.Status})
	}
	return out, err
}

func newAuthorityInit(a *app) *cobra.Command {
	v := &authorityVerb{app: a}
	return v.flags(&cobra.Command{
		Use:   "init",
		Short: "Make an authority, if there is none",
		Long: `Make the directory, private to the user, and its first key. Where there is an
authority already nothing changes. A directory that others can reach, or that
has runs and no keys, is refused and left as it is.`,
		Example: `  tidemark authority init
  tidemark authority init --dir /var/lib/agent/authority`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.with(authority.Options{Create: true}, func(ctx context.Context, a *authority.Authority) error {
				keys, err := generationsOf(ctx, a)
				if err != nil {
					return err
				}
				return v.print(cmd.OutOrStdout(), struct {
					Keys []keyInfo `json:"keys"`
				}{keys}, "ready; key %d signs\n", keys[len(keys)-1].Generation)
			})
		},
	})
}

func newAuthorityRotate(a *app) *cobra.Command {
	v := &authorityVerb{app: a}
	return v.flags(&cobra.Command{
		Use:   "rotate",
		Short: "Make a new key that signs from now on",
		Long: `Make a new key. Every process that has the authority open signs with it from its
next operation on. What older keys signed still verifies, until 'retire'.`,
		Example: `  tidemark authority rotate
  tidemark authority rotate --json`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.with(authority.Options{}, func(ctx context.Context, a *authority.Authority) error {
				n, err := a.RotateKey(ctx)
				if err != nil {
					return err
				}
				return v.print(cmd.OutOrStdout(), keyInfo{n, "primary"}, "key %d signs from now on\n", n)
			})
		},
	})
}

func newAuthorityRetire(a *app) *cobra.Command {
	v := &authorityVerb{app: a}
	key := count{low: 1, top: 1<<63 - 1}
	cmd := v.flags(&cobra.Command{
		Use:   "retire --key N",
		Short: "Forget a key for good",
		Long: `Forget a key that no longer signs. It is refused while a run that is not over,
an envelope that nobody has imported yet, or a damaged run needs the key.
Records of runs that are over are signed again; envelopes of finished runs that
the key signed do not verify any more.`,
		Example: `  tidemark authority retire --key 1`,
		Args:    noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !key.set {
				return usagef("--key is missing: name the generation, as 'tidemark authority list' shows it")
			}
			return v.with(authority.Options{}, func(ctx context.Context, a *authority.Authority) error {
				if err := a.RetireKey(ctx, uint64(key.n)); errors.Is(err, authority.ErrState) {
					return fmt.Errorf("key %d signs, is still needed, or is no key: %w", key.n, err)
				} else if err != nil {
					return err
				}
				return v.print(cmd.OutOrStdout(), keyInfo{uint64(key.n), "retired"}, "key %d is gone\n", key.n)
			})
		},
	})
	cmd.Flags().Var(&key, "key", "the generation to forget")
	return cmd
}

func newAuthorityResolve(a *app) *cobra.Command {
	v := &authorityVerb{app: a}
	as := choice{allowed: []string{"failed", "cancelled"}}
	cmd := v.flags(&cobra.Command{
		Use:   "resolve RUN --as failed|cancelled",
		Short: "End a run whose owner is gone, or that is damaged",
		Long: `End a run for good. It is for a run that is active or importing and whose
process has died, for one that is damaged, and for a suspended one that nobody
is to resume. An envelope of it that is still about is void afterwards. A run
whose owner lives is refused with exit code 3, one that is over with 4.

There is no way back. The run's log is not touched.`,
		Example: `  tidemark authority resolve run-17 --as failed`,
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			outcomes := map[string]snapshot.Lifecycle{"failed": snapshot.Failed, "cancelled": snapshot.Cancelled}
			if as.value == "" {
				return usagef("--as is missing: say failed or cancelled")
			}
			return v.with(authority.Options{}, func(ctx context.Context, a *authority.Authority) error {
				if err := a.Resolve(ctx, args[0], outcomes[as.value]); errors.Is(err, authority.ErrState) {
					return fmt.Errorf("run %q is over, or was never started: %w", args[0], err)
				} else if err != nil {
					return fmt.Errorf("run %q: %w", args[0], err)
				}
				return v.print(cmd.OutOrStdout(), struct {
					Run   string `json:"run"`
					Phase string `json:"phase"`
				}{args[0], as.value}, "run %q is %s\n", args[0], as.value)
			})
		},
	})
	cmd.Flags().Var(&as, "as", "how the run ended")
	completeWords(cmd, "as", as.allowed)
	return cmd
}

// oneRun is the operand of verbs about one run.
func oneRun(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("RUN is missing: name the run by its ID")
	case 1:
		return nil
	}
	return usagef("one RUN at a time: %q is one too many", args[1])
}
