package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/contexts"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// CompleteContexts completes the names of contexts.
func (s *Session) CompleteContexts(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	all, err := contexts.Read(s.Getenv)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range all.Names() {
		if strings.HasPrefix(name, toComplete) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeNamespaces completes the namespaces that contain objects.
func (s *Session) completeNamespaces(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	// The word to complete is no valid namespace yet.
	if s.Namespace = schema.DefaultNamespace; s.Begin(cmd, nil) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, o := range s.Known(cmd.Context(), store.Scope{}) {
		if strings.HasPrefix(o.Meta.Namespace, toComplete) {
			names = append(names, o.Meta.Namespace)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// Known returns the server's objects in a scope. It returns none if the server does not
// answer.
func (s *Session) Known(ctx context.Context, scope store.Scope) []*schema.Object {
	c, err := s.Connect(func(string) {})
	if err != nil {
		return nil
	}
	list, err := c.List(ctx, scope, store.ListOptions{AtLeast: store.Any})
	if err != nil {
		return nil
	}
	return list.Items
}
