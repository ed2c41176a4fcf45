package targets

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// CompleteNames completes KIND NAME… with the names on the server. It completes nothing
// if the server cannot be reached.
func CompleteNames(s *cli.Session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		const nothing = cobra.ShellCompDirectiveNoFileComp
		if len(args) == 0 {
			return CompleteKinds(toComplete), nothing
		}
		kinds, err := parseKinds(args[0])
		if err != nil || s.Begin(cmd, nil) != nil {
			return nil, nothing
		}
		var names []string
		for _, kind := range kinds {
			for _, o := range s.Known(cmd.Context(), store.Scope{Kind: kind, Namespace: s.Namespace}) {
				if cli.Completes(toComplete, o.Meta.Name) && !slices.Contains(args[1:], o.Meta.Name) {
					names = append(names, o.Meta.Name)
				}
			}
		}
		return names, nothing
	}
}

// CompleteName is completeNames for a verb that takes one name.
func CompleteName(s *cli.Session) cobra.CompletionFunc {
	names := CompleteNames(s)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, args, toComplete)
	}
}

// CompleteKinds completes the name of a kind.
func CompleteKinds(toComplete string) []string {
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
