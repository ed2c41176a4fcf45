package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

const defaultServer = "http://127.0.0.1:8080"

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

func newRoot(c *CLI) *cobra.Command {
	s := &session{CLI: c}
	root := &cobra.Command{
		Use:   "istioctl",
		Short: "Manage the config objects of a pilot-api server",
		Long: `istioctl manages the config objects of a pilot-api server: VirtualServices,
DestinationRules and Gateways; the older RouteRules, DestinationPolicies,
EgressRules and IngressRules; and the ServiceEntries and WorkloadEntries to which
they refer. It checks files completely, with the same engine as the server, before
it sends anything.

Characters that could control a terminal are shown as escapes, such as \x1b and
\u202e. In JSON and YAML documents they are escapes of that format. Only a JSONPath
prints them unchanged, if the output is not a terminal.

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted. A watch ends
successfully when it is interrupted.`,
		Example: `  # Store everything in a folder, then look at it
  istioctl create -f rules/
  istioctl get all

  # See what the objects ask for and cannot have
  istioctl problems

  # Follow the route rules as they change
  istioctl watch routerules`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              unknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: s.begin,
		Version:           version,
		// A slip such as crate for create is two letters at most.
		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate(versionLine("Client", clientVersion()))
	root.InitDefaultVersionFlag()
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	s.addFlags(root)
	root.AddCommand(
		newCreate(s), newReplace(s), newApply(s), newDiff(s), newDelete(s), newGet(s), newWatch(s), newWait(s), newDescribe(s), newProblems(s), newAnalyze(s),
		newHistory(s), newRollback(s), newExport(s), newPatch(s), newEdit(s), newExplain(s), newConfig(s),
		newRoute(s), newProxyConfig(s), newProxyStatus(s),
		newValidate(s), newVersion(s), newBootstrap(s), newCompletion(s),
	)
	for _, cmd := range root.Commands() {
		cmd.DisableAutoGenTag = true
		for _, sub := range cmd.Commands() {
			sub.DisableAutoGenTag = true
		}
	}
	root.CompletionOptions.DisableDefaultCmd = true
	return root
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
	return store.Author{User: printable(name), Program: "istioctl/" + version}
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

// connect makes the client. It does not send anything yet.
func (s *session) connect(warn func(string)) (*client.Client, error) {
	return s.connectWith(client.Options{Warn: warn})
}

func (s *session) connectWith(opts client.Options) (*client.Client, error) {
	opts.Timeout, opts.UserAgent = s.requestTimeout, "istioctl/"+version
	if err := s.credentials.apply(&opts, s.server); err != nil {
		return nil, err
	}
	c, err := client.New(s.server, opts)
	if err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}

// flagError reports what is wrong with the flags. If the command itself does not exist,
// it reports that, because the command's flags are then unknown too.
func flagError(args []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		if cmd.HasParent() {
			return &usageError{err}
		}
		// Parse again to find the words among the flags.
		cmd.FParseErrWhitelist.UnknownFlags = true
		_ = cmd.ParseFlags(args)
		return cmp.Or(unknownCommand(cmd, cmd.Flags().Args()), error(&usageError{err}))
	}
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	return usagef("there is no command %q%s", args[0], hint)
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

// noFileArgs refuses arguments, because each file needs a -f. The error suggests no
// whole command: that would lack the given flags, such as a dry run.
func noFileArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("files are named with -f: say -f %s", strings.Join(args, " -f "))
}

// positional turns the error of a cobra validator into a usage error.
func positional(validate cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := validate(cmd, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}
