package root

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/analyze"
	"github.com/pilot-api/pilot-api/cmd/istioctl/apply"
	"github.com/pilot-api/pilot-api/cmd/istioctl/bootstrap"
	"github.com/pilot-api/pilot-api/cmd/istioctl/ca"
	"github.com/pilot-api/pilot-api/cmd/istioctl/config"
	"github.com/pilot-api/pilot-api/cmd/istioctl/describe"
	"github.com/pilot-api/pilot-api/cmd/istioctl/diff"
	"github.com/pilot-api/pilot-api/cmd/istioctl/edit"
	"github.com/pilot-api/pilot-api/cmd/istioctl/export"
	"github.com/pilot-api/pilot-api/cmd/istioctl/fields"
	"github.com/pilot-api/pilot-api/cmd/istioctl/get"
	"github.com/pilot-api/pilot-api/cmd/istioctl/history"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/login"
	"github.com/pilot-api/pilot-api/cmd/istioctl/proxy"
	"github.com/pilot-api/pilot-api/cmd/istioctl/reach"
	"github.com/pilot-api/pilot-api/cmd/istioctl/token"
	"github.com/pilot-api/pilot-api/cmd/istioctl/wait"
)

// New returns the root command of a program.
func New(c *cli.Program) *cobra.Command {
	s := &cli.Session{Program: c}
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
		Example: `  # Store the objects of a folder, and list some of them
  istioctl create -f rules/
  istioctl get all

  # See which parts of the objects cannot be honoured
  istioctl problems

  # Follow the route rules as they change
  istioctl watch routerules`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              unknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: s.Begin,
		Version:           c.Version,
		// A slip such as crate for create is two letters at most.
		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate(versionLine("Client", clientVersion(c.Version)))
	root.InitDefaultVersionFlag()
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	s.AddFlags(root)
	root.AddCommand(verbs(s)...)
	for _, cmd := range root.Commands() {
		cmd.DisableAutoGenTag = true
		for _, sub := range cmd.Commands() {
			sub.DisableAutoGenTag = true
		}
	}
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// verbs returns the commands of a session.
func verbs(s *cli.Session) []*cobra.Command {
	return []*cobra.Command{
		apply.NewCommand(s), apply.NewCreateCommand(s), apply.NewReplaceCommand(s), apply.NewDeleteCommand(s),
		edit.NewCommand(s), edit.NewPatchCommand(s),
		get.NewCommand(s), get.NewWatchCommand(s), wait.NewCommand(s), describe.NewCommand(s),
		diff.NewCommand(s), history.NewCommand(s), history.NewRollbackCommand(s), export.NewCommand(s),
		analyze.NewCommand(s), analyze.NewProblemsCommand(s), analyze.NewValidateCommand(s),
		proxy.NewConfigCommand(s), proxy.NewStatusCommand(s), proxy.NewRouteCommand(s), reach.NewCommand(s), bootstrap.NewCommand(s),
		config.NewCommand(s), ca.NewCommand(s), token.NewCommand(s), token.NewWhoAmICommand(s), login.NewCommand(s), fields.NewCommand(s), newVersion(s), newCompletion(s),
	}
}

// refuseUnknownHelp makes help for a command that does not exist wrong usage.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				if err != nil || len(rest) == 0 || !of.HasSubCommands() {
					return err
				}
				return unknownCommand(of, rest)
			}
		}
	}
}

// flagError reports what is wrong with the flags. If the command itself does not exist,
// it reports that, because the command's flags are then unknown too.
func flagError(args []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		if cmd.HasParent() {
			return cli.Usage(err)
		}
		// Parse again to find the words among the flags.
		cmd.FParseErrWhitelist.UnknownFlags = true
		_ = cmd.ParseFlags(args)
		return cmp.Or(unknownCommand(cmd, cmd.Flags().Args()), cli.Usage(err))
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
	return cli.Usagef("there is no command %q%s", args[0], hint)
}
