package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// oneLog is the operand of most verbs.
func oneLog(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("LOG is missing: name the file of the log")
	case 1:
		return nil
	}
	return usagef("one LOG at a time: %q is one too many", args[1])
}

// noOperand is for verbs that take none.
func noOperand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q is one too many: %s takes no operand", args[0], cmd.Name())
	}
	return nil
}

// noSuchVerb is reached with operands that are no verb.
func noSuchVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("there is no verb %q%s", args[0], didYouMean(args[0], "", verbNames(root)))
}

// flagError says what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		name := unknown.GetSpecifiedName()
		if slices.Contains(verbNames(cmd.Root()), name) {
			return usagef("there is no flag --%s; did you mean the verb %s?", name, name)
		}
		if unknown.GetSpecifiedShortnames() != "" {
			return usagef("there is no flag -%s%s", name, didYouMean(unknown.GetSpecifiedShortnames(), "--", flags))
		}
		return usagef("there is no flag --%s%s", name, didYouMean(name, "--", flags))
	case errors.As(err, &bad):
		return usagef("--%s: %w", bad.GetFlag().Name, reason(bad))
	}
	return usagef("%w", err)
}

// reason takes the words of the flag library off the words of the value.
func reason(bad *pflag.InvalidValueError) error {
	err := bad.Unwrap()
	if bad.GetFlag().Value.Type() == "bool" {
		return fmt.Errorf("%q is neither true nor false", bad.GetValue())
	}
	return err
}

// didYouMean names the candidate nearest to what was typed, if one is near.
func didYouMean(typed, prefix string, candidates []string) string {
	best, at := "", math.MaxInt
	for _, c := range candidates {
		d := distance(typed, c)
		if strings.HasPrefix(c, typed) {
			d = min(d, 1)
		}
		if d < at {
			best, at = c, d
		}
	}
	if at > max(1, min(len(typed), len(best))/2) {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, best)
}

// distance counts the letters to insert, drop, replace or exchange with their
// neighbour to make b of a.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }

// Type names the value in help.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

// Set takes one of the words.
func (c *choice) Set(s string) error {
	if slices.Contains(c.allowed, s) {
		c.value = s
		return nil
	}
	return fmt.Errorf("%q is none of %s%s", s, strings.Join(c.allowed, ", "), didYouMean(s, "", c.allowed))
}

// count is a flag that takes a number within bounds.
type count struct {
	n        int64
	low, top int64
	set      bool
}

func (c *count) String() string { return strconv.FormatInt(c.n, 10) }

// Type names the value in help.
func (c *count) Type() string { return "N" }

// Set takes a decimal number.
func (c *count) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a number", s)
	case n < c.low:
		return fmt.Errorf("%d is too small, it must be at least %d", n, c.low)
	case n > c.top:
		return fmt.Errorf("%d is too large, it must be at most %d", n, c.top)
	}
	c.n, c.set = n, true
	return nil
}

// size is a flag that takes a number of bytes, as 4096, 64K or 1GiB.
type size int64

func (z *size) String() string { return strconv.FormatInt(int64(*z), 10) }

// Type names the value in help.
func (z *size) Type() string { return "SIZE" }

// Set takes a number with an optional power of 1024 behind it.
func (z *size) Set(s string) error {
	digits := strings.TrimRight(s, "kKmMgGtTiB")
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(s[len(digits):], "B"), "i"))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q is not a size such as 4096, 64K or 1GiB", s)
	}
	*z = size(n << shift)
	return nil
}

// span is a flag that takes for how long something goes on.
type span time.Duration

func (d *span) String() string { return time.Duration(*d).String() }

// Type names the value in help.
func (d *span) Type() string { return "DURATION" }

// Set takes a number with its unit behind it.
func (d *span) Set(s string) error {
	t, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a duration such as 90s or 2h", s)
	case t < 0:
		return fmt.Errorf("%s is negative", s)
	}
	*d = span(t)
	return nil
}

// showHelp prints what a verb does and how it is used.
func showHelp(cmd *cobra.Command, _ []string) {
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n%s", about, cmd.UsageString()) // run tells of an error
}

const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} VERB [flags]{{else}}{{.UseLine}}{{end}}
{{- if .HasExample}}

Example:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}{{$cmds := .Commands}}
{{- range $group := .Groups}}

{{.Title}}:
{{- range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}{{end}}{{end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasAvailableInheritedFlags}}

Flags of every verb:
{{.InheritedFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}
{{- end}}

Exit codes: 0 good, 1 corrupt, 2 usage, unreadable or not a log, 3 held by
another writer, 4 rejected or uncertain write, 5 a cursor not of this history.
`

// completeWords offers the words of a choice to the shell.
func completeWords(cmd *cobra.Command, flag string, words []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("internal error: " + err.Error())
	}
}
