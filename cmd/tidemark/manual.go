package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newManual() *cobra.Command {
	format := choice{value: "markdown", allowed: []string{"markdown", "man"}}
	cmd := &cobra.Command{
		Use:     "manual [VERB]",
		Short:   "Print the manual, or the page of one verb",
		GroupID: groupLearn,
		Long: `Print the manual in Markdown, all verbs one behind the other, or the page of one
verb. With --format man it is a page for the man program: that of one verb, or
that of tidemark itself.`,
		Example: `  tidemark manual append
  tidemark manual append --format man > tidemark-append.1`,
		ValidArgsFunction: newHelp().ValidArgsFunction,
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, err := findVerb(cmd.Root(), args)
			if err != nil {
				return err
			}
			text := manPage(verb)
			if format.value == "markdown" {
				text = markdownPage(verb)
				if len(args) == 0 {
					text = markdownManual(verb)
				}
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().Var(&format, "format", "print Markdown, or a page for man")
	completeWords(cmd, "format", format.allowed)
	return cmd
}

// exitTable is the contract of the exit codes, for the manual.
var exitTable = []struct{ code, means string }{
	{"0", "good; also when a pipe was closed early"},
	{"1", "the log is corrupt, a run is damaged, or an envelope is not genuine; also a writer that refuses the log"},
	{"2", "usage, an input or file that cannot be read, or not a log"},
	{"3", "another process has the log or the run, or the log belongs to a run"},
	{"4", "the write was rejected, or its outcome is unknown"},
	{"5", "the cursor or revision is not of this history"},
	{"128+N", "stopped by signal N: 130 after Ctrl-C, 143 after SIGTERM; the log is sound"},
}

// markdownManual is docs/CLI.md.
func markdownManual(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\nPrinted by `tidemark manual`; `make golden` writes it anew.\n\n")
	b.WriteString(root.Long + "\n\n```sh\n" + unindent(root.Example) + "\n```\n\n")
	b.WriteString(`Records and reports go to standard output, everything said to a person goes to
standard error. Each error says what to do next. Flags may stand before or
behind the operand; ` + "`--`" + ` ends them. A pipe that is closed early is no error.

## Exit codes

| code | meaning |
|---|---|
`)
	for _, e := range exitTable {
		fmt.Fprintf(&b, "| %s | %s |\n", e.code, e.means)
	}
	b.WriteString("\n## Flags of every verb\n\n" + flagTable(root.PersistentFlags()))
	for _, group := range root.Groups() {
		for _, c := range root.Commands() {
			if c.GroupID == group.ID {
				b.WriteString("\n" + markdownPage(c))
				for _, verb := range c.Commands() {
					b.WriteString("\n" + markdownPage(verb))
				}
			}
		}
	}
	return b.String()
}

func markdownPage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s.\n\n    %s\n", strings.TrimPrefix(c.CommandPath(), "tidemark "), c.Short, c.UseLine())
	if c.Long != "" {
		b.WriteString("\n" + c.Long + "\n")
	}
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		b.WriteString("\n" + flagTable(c.LocalNonPersistentFlags()))
	}
	b.WriteString("\n```sh\n" + unindent(c.Example) + "\n```\n")
	return b.String()
}

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	b.WriteString("| flag | meaning |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			cells := strings.NewReplacer("|", `\|`)
			fmt.Fprintf(&b, "| `%s` | %s |\n", cells.Replace(flagText(f)), cells.Replace(flagMeaning(f)))
		}
	})
	return b.String()
}

// flagText is a flag with the name of its value.
func flagText(f *pflag.Flag) string {
	if value, _ := pflag.UnquoteUsage(f); value != "" {
		return "--" + f.Name + " " + value
	}
	return "--" + f.Name
}

func flagMeaning(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "false":
		return usage
	}
	return fmt.Sprintf("%s (default %s)", usage, f.DefValue)
}

func unindent(example string) string {
	return strings.TrimPrefix(strings.ReplaceAll(example, "\n  ", "\n"), "  ")
}

// manPage is a page in the language of man.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", strings.ToUpper(roff(name)), roff(name), roff(c.Short), roff(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n" + strings.ReplaceAll(roff(c.Long), "\n\n", "\n.PP\n") + "\n")
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH VERBS\n")
		for _, verb := range c.Commands() {
			if verb.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s.\n", roff(verb.Name()), roff(verb.Short))
			}
		}
	}
	b.WriteString(".SH OPTIONS\n")
	option := func(f *pflag.Flag) {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s.\n", roff(flagText(f)), roff(flagMeaning(f)))
	}
	c.LocalNonPersistentFlags().VisitAll(option)
	c.Root().PersistentFlags().VisitAll(option)
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitTable {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s.\n", e.code, roff(e.means))
	}
	b.WriteString(".SH EXAMPLES\n.nf\n" + roff(unindent(c.Example)) + "\n.fi\n")
	return b.String()
}

// roff keeps text from being read as commands of man.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
