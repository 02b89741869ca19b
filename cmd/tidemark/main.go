// Command tidemark writes, reads and checks Tidemark logs from a shell.
//
// It is a contract: what goes in is lines or JSON lines on standard input, what
// comes out is lines or JSON lines on standard output, everything said to a
// person goes to standard error, and the exit code says which of six things
// happened (outcome.go). docs/CLI.md is its manual and is generated from the
// commands themselves.
//
// There is one file per verb. The rest: outcome.go maps errors to exit codes
// and advice, input.go and record.go are how records come in and go out,
// usage.go says what is wrong with a command line, manual.go prints the manual.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// A reader that goes away is reported by the write to it, see output.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Stdin, output{os.Stdout}, os.Stderr))
}

// run executes one command line and returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	shown := &remembered{Writer: out}
	root.SetOut(shown)
	root.SetErr(errs)
	cmd, err := root.ExecuteC()
	if err == nil {
		err = shown.err // of help, which is shown by the library
	}
	if err == nil {
		return 0
	}
	code, text := explain(cmd, err)
	if text != "" {
		fmt.Fprint(errs, text) // there is nobody to tell if this fails
	}
	return code
}

// Groups of verbs, in the order in which help shows them.
const (
	groupWrite = "write"
	groupRead  = "read"
	groupCheck = "check"
	groupLearn = "learn"
)

// app is what all verbs share: the flags that may stand before any of them.
type app struct {
	anyFileSystem bool
}

func newRoot() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:   "tidemark",
		Short: "Write, read and check append-only logs that survive crashes",
		Long: `Tidemark keeps an append-only log in one file. A commit is acknowledged only
after it is on disk, and is there whole or not at all. Damage to what was
acknowledged is reported with its place, and never skipped or cut off.`,
		Example: `  printf 'one\ntwo\n' | tidemark append run.log --ack
  tidemark cat run.log
  tidemark verify run.log`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              noSuchVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().BoolVar(&a.anyFileSystem, "any-file-system", false,
		"accept network and user-space file systems, whose locks and syncs may not hold")
	root.PersistentFlags().BoolP("help", "h", false, "show help, with an example")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupWrite, Title: "Write"},
		&cobra.Group{ID: groupRead, Title: "Read"},
		&cobra.Group{ID: groupCheck, Title: "Check"},
		&cobra.Group{ID: groupLearn, Title: "Learn"},
	)
	// The library keeps its help command out of lists; ours is a verb.
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true, RunE: func(cmd *cobra.Command, _ []string) error {
		return usagef("there is no verb %q; did you mean help?", cmd.Name())
	}})
	root.AddCommand(
		newCreate(a), newAppend(a), newCheckpoint(a), newCopy(a), newFork(a), newRetain(a), newCompact(a),
		newCat(a), newTail(a), newStat(a), newInspect(a), newVerify(a), newSalvage(a),
		newGet(a), newReindex(a), newAuthority(a),
		newDemo(), newTorture(a), newBench(a), newHelp(), newManual(), newCompletion(), newVersion(),
	)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpFunc(showHelp)
	root.SetUsageTemplate(usageTemplate)
	return root
}
