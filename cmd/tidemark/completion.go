package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:     "completion SHELL",
		Short:   "Print a completion script for bash, zsh, fish or powershell",
		GroupID: groupLearn,
		Long: `Print a script that lets a shell complete verbs, flags and their values. Load it
once to try it, or put it where the shell looks for such scripts.`,
		Example: `  tidemark completion bash > tidemark.bash
  tidemark completion zsh > _tidemark
  tidemark completion fish > tidemark.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one shell: bash, zsh, fish or powershell")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(w)
			}
			return usagef("there is no shell %q%s", args[0], didYouMean(args[0], "", shells))
		},
	}
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB]",
		Short:   "Show help on a verb",
		GroupID: groupLearn,
		Long:    `Show what a verb does, its flags and an example; without a verb, list them.`,
		Example: `  tidemark help append`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return verbNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, err := findVerb(cmd.Root(), args)
			if err != nil {
				return err
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
	}
}

// findVerb returns the verb that the operands name, or the program itself.
func findVerb(root *cobra.Command, args []string) (*cobra.Command, error) {
	switch len(args) {
	case 0:
		return root, nil
	case 1:
		for _, c := range root.Commands() {
			if c.Name() == args[0] && c.IsAvailableCommand() {
				return c, nil
			}
		}
		return nil, noSuchVerb(root, args)
	}
	if verb, err := findVerb(root, args[:1]); err != nil || verb.HasAvailableSubCommands() {
		if err != nil {
			return nil, err
		}
		return findVerb(verb, args[1:])
	}
	return nil, fmt.Errorf("%w: one verb at a time: %q is one too many", errUsage, args[1])
}

// verbNames lists the verbs, for a shell and for suggestions.
func verbNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}
