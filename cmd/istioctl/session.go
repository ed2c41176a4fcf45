package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// session is what all verbs share: the program's inputs and outputs, and the persistent
// flags.
type session struct {
	*CLI
	server         string
	namespace      string
	requestTimeout time.Duration
	timeout        time.Duration
	context        string // the name, "" for the current one
	credentials    access // for the server of the context

	// shown holds the warnings about files that were printed with their position.
	shown []string
	// namespaceGiven distinguishes -n default from no -n.
	namespaceGiven bool
}

func (s *session) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&s.server, "server", defaultServer, "URL or HOST:PORT of the pilot-api server; or set ISTIOCTL_SERVER")
	flags.StringVarP(&s.namespace, "namespace", "n", schema.DefaultNamespace, "namespace of the objects")
	flags.StringVar(&s.context, "context", "", "context of the config file to use; see 'istioctl config'")
	flags.DurationVar(&s.requestTimeout, "request-timeout", 30*time.Second, "give up on one request after this time; 0 waits for ever")
	flags.DurationVar(&s.timeout, "timeout", 0, "give up on the whole command after this time; 0 waits for ever")
	// The flags exist, so this cannot fail.
	_ = root.RegisterFlagCompletionFunc("namespace", s.completeNamespaces)
	_ = root.RegisterFlagCompletionFunc("context", func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return s.completeContexts(cmd, nil, toComplete)
	})
}

// begin completes the session before any verb runs.
func (s *session) begin(cmd *cobra.Command, args []string) error {
	if err := noneEmpty(cmd, args); err != nil {
		return err
	}
	flags := cmd.Flags()
	s.namespaceGiven = flags.Changed("namespace")
	if err := s.enter(flags.Changed("server")); err != nil {
		return err
	}
	if strings.TrimSpace(s.server) == "" {
		return usagef("--server is empty: is a variable not set?")
	}
	s.server = serverURL(s.server)
	if err := s.checkFlags(); err != nil {
		return err
	}
	cmd.SetContext(store.WithAuthor(cmd.Context(), s.author()))
	if s.timeout > 0 {
		// The timer ends with the program, which ends with the command.
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), s.timeout, fmt.Errorf("not done after --timeout %s", s.timeout))
		context.AfterFunc(ctx, cancel)
		cmd.SetContext(ctx)
	}
	return nil
}

// serverURL returns the URL for the value of --server.
func serverURL(server string) string {
	if strings.Contains(server, "://") {
		return server
	}
	return "http://" + server
}

// author returns the author that the history records for writes of this command.
func (s *session) author() store.Author {
	name := s.Getenv("ISTIOCTL_USER")
	if name == "" && s.User != nil {
		name = s.User()
	}
	return store.Author{User: printable(name), Program: "istioctl/" + s.Version}
}

// printable returns a text that is safe in a header and in a table.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text))
}

// checkFlags refuses values without a meaning. In particular, an empty namespace, for
// example from an unset variable, must never mean all namespaces.
func (s *session) checkFlags() error {
	if err := schema.CheckNamespace(s.namespace); err != nil {
		return usagef("--namespace: %w", err)
	}
	for name, limit := range map[string]time.Duration{"request-timeout": s.requestTimeout, "timeout": s.timeout} {
		if limit < 0 {
			return usagef("--%s %s: must be 0 (no limit) or more", name, limit)
		}
	}
	return nil
}

const defaultServer = "http://127.0.0.1:8080"

// enter sets what no flag says from the environment and the context. A context named
// by a flag wins over the environment. The credentials of a context are used only for
// its own server.
func (s *session) enter(serverGiven bool) error {
	env := s.Getenv("ISTIOCTL_SERVER")
	if env != "" && !serverGiven {
		s.server = env
	}
	all, err := readContexts(s.Getenv)
	if err != nil {
		return err
	}
	name := s.context
	if name == "" {
		name = all.Current
	}
	if name == "" {
		return nil
	}
	chosen, err := all.find(name)
	if err != nil {
		return usage(err)
	}
	if chosen.Namespace != "" && !s.namespaceGiven {
		s.namespace = chosen.Namespace
	}
	if chosen.Server != "" && !serverGiven && (env == "" || s.context != "") {
		s.server, s.credentials = chosen.Server, all.credentials(chosen)
	}
	return nil
}

// noneEmpty refuses a blank argument, for example from an unset variable, because it
// must never mean all objects of a kind. Completion is exempt, because its arguments
// are not complete yet.
func noneEmpty(cmd *cobra.Command, args []string) error {
	if cmd.Name() == cobra.ShellCompRequestCmd {
		return nil
	}
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return usagef("argument %d of %s is empty: is a variable not set?", i+1, cmd.CommandPath())
		}
	}
	return nil
}

// taught returns a cobra validator that reports its own error text.
func taught(validate cobra.PositionalArgs, format string, args ...any) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if validate(cmd, given) != nil {
			return usagef(format, args...)
		}
		return nil
	}
}

// positional turns the error of a cobra validator into a usage error.
func positional(validate cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := validate(cmd, args); err != nil {
			return usage(err)
		}
		return nil
	}
}
