package main

import (
	"context"

	"github.com/spf13/cobra"
)

type watchFlags struct {
	output        string
	selector      string
	allNamespaces bool
	// plain leaves the type of the event out of tables, as get does.
	plain bool
}

func newWatch(s *session) *cobra.Command {
	return &cobra.Command{Use: "watch"}
}

func runWatch(ctx context.Context, s *session, flags watchFlags, args []string) error { return nil }
