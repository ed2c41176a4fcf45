package root

import (
	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
)

func newCompletion(s *cli.Session) *cobra.Command {
	shells := []string{"bash", "fish", "powershell", "zsh"}
	cmd := &cobra.Command{
		Use:   "completion (bash | fish | powershell | zsh)",
		Short: "Print a shell completion script",
		Long: `Print a script with which a shell completes commands, flags, kinds, and the names of
objects and namespaces on the server.`,
		Example: `  # bash, for this session
  source <(istioctl completion bash)

  # zsh, for all sessions
  istioctl completion zsh > "${fpath[1]}/_istioctl"

  # fish, for all sessions
  istioctl completion fish > ~/.config/fish/completions/istioctl.fish

  # PowerShell, for this session
  istioctl completion powershell | Out-String | Invoke-Expression`,
		Args: cli.ArgsOr(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
			"say for which shell: istioctl completion bash, fish, powershell or zsh"),
		ValidArgs: shells,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		switch args[0] {
		case "bash":
			return root.GenBashCompletionV2(s.Stdout, true)
		case "fish":
			return root.GenFishCompletion(s.Stdout, true)
		case "powershell":
			return root.GenPowerShellCompletionWithDesc(s.Stdout)
		default:
			return root.GenZshCompletion(s.Stdout)
		}
	}
	return cmd
}
