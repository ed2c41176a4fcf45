package cli

import (
	"context"
	"regexp"
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
		if Completes(toComplete, name) {
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
		if Completes(toComplete, o.Meta.Namespace) {
			names = append(names, o.Meta.Namespace)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// word matches a text that no shell changes or takes for anything but one word, and that is
// no flag.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// Completes reports whether a name completes the word that a person has begun. A shell
// inserts completions into the command line without quotes, so names that need them are
// left out.
func Completes(toComplete, name string) bool {
	return strings.HasPrefix(name, toComplete) && word.MatchString(name)
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
