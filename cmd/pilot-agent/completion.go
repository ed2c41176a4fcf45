package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
)

func newCompletion() *cobra.Command {
	shells := []string{"bash", "fish", "zsh"}
	return &cobra.Command{
		Use:   "completion (bash | fish | zsh)",
		Short: "Print a shell completion script",
		Long:  `Print a script with which a shell completes commands and flags.`,
		Example: `  # bash, for this session
  source <(pilot-agent completion bash)`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usage(errors.New("say for which shell: pilot-agent completion bash, fish or zsh"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(cmd.OutOrStdout(), true)
			case "fish":
				return root.GenFishCompletion(cmd.OutOrStdout(), true)
			default:
				return root.GenZshCompletion(cmd.OutOrStdout())
			}
		},
	}
}
