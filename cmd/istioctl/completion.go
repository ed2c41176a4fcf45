package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

func newCompletion(s *session) *cobra.Command {
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
		Args: taught(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
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

// completeNames completes KIND NAME… with the names on the server. It completes nothing
// if the server cannot be reached.
func (s *session) completeNames(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 {
		return completeKinds(toComplete), nothing
	}
	kinds, err := parseKinds(args[0])
	if err != nil || s.begin(cmd, nil) != nil {
		return nil, nothing
	}
	var names []string
	for _, kind := range kinds {
		for _, o := range s.known(cmd.Context(), store.Scope{Kind: kind, Namespace: s.namespace}) {
			if strings.HasPrefix(o.Meta.Name, toComplete) && !slices.Contains(args[1:], o.Meta.Name) {
				names = append(names, o.Meta.Name)
			}
		}
	}
	return names, nothing
}

// completeName is completeNames for a verb that takes one name.
func (s *session) completeName(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.completeNames(cmd, args, toComplete)
}

// completeNamespaces completes the namespaces that contain objects.
func (s *session) completeNamespaces(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	// The word to complete is no valid namespace yet.
	if s.namespace = schema.DefaultNamespace; s.begin(cmd, nil) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, o := range s.known(cmd.Context(), store.Scope{}) {
		if strings.HasPrefix(o.Meta.Namespace, toComplete) {
			names = append(names, o.Meta.Namespace)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// known returns the server's objects in a scope, none if the server does not answer.
func (s *session) known(ctx context.Context, scope store.Scope) []*schema.Object {
	c, err := s.connect(func(string) {})
	if err != nil {
		return nil
	}
	list, err := c.List(ctx, scope, store.ListOptions{AtLeast: store.Any})
	if err != nil {
		return nil
	}
	return list.Items
}

func completeKinds(toComplete string) []string {
	var names []string
	for _, k := range schema.Kinds() {
		if strings.HasPrefix(k.Plural, toComplete) {
			names = append(names, cobra.CompletionWithDesc(k.Plural, k.Kind+", "+k.APIVersion()))
		}
	}
	if strings.HasPrefix("all", toComplete) {
		names = append(names, cobra.CompletionWithDesc("all", "every kind"))
	}
	return names
}
