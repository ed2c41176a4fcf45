package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/contexts"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
)

// NewCommand returns the command config, with one below for each thing to do.
func NewCommand(s *cli.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Manage contexts: named servers",
		Long: `Manage contexts: servers with a name, in the file ISTIOCTL_CONFIG or
istioctl/config.yaml in XDG_CONFIG_HOME (~/.config). A context has a server, a
namespace, and credentials: a token, a login (istioctl login) or a client certificate.
set-context with credentials of one kind removes those of another.

--context selects a context; the default is the current one. --server and
ISTIOCTL_SERVER have precedence over the current context. A token or certificate of a
context is sent only to the server of that context. Credentials from flags are used
instead of those from the environment, and both instead of those of a context.`,
		Example: `  # Add two servers, and make one of them the current one
  istioctl config set-context test --server localhost:8080
  istioctl config set-context prod --server https://pilot.example.com --namespace shop \
    --token-file ~/.pilot-token --certificate-authority ca.pem
  istioctl config use-context test

  # Use the other server for one command
  istioctl get all --context prod`,
		// These commands repair the contexts, so they must run even if the contexts are wrong.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		Args:              noSuchConfig,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGetContexts(s), newUseContext(s), newSetContext(s), newDeleteContext(s), newCurrentContext(s), newViewConfig(s))
	return cmd
}

func noSuchConfig(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cli.Usagef("there is no 'istioctl config %s'", args[0])
}

// configCommand returns a command that reads the contexts and may change them.
func configCommand(s *cli.Session, use, short string, args cobra.PositionalArgs, do func(*cobra.Command, *contexts.File, []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: args, ValidArgsFunction: s.CompleteContexts}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := contexts.Read(s.Getenv)
		if err != nil {
			return err
		}
		return do(cmd, all, args)
	}
	return cmd
}

// oneContext checks that there is one argument.
func oneContext(cmd *cobra.Command, args []string) error {
	return cli.ArgsOr(cobra.ExactArgs(1), "say which context: %s NAME", cmd.CommandPath())(cmd, args)
}

func newGetContexts(s *cli.Session) *cobra.Command {
	return configCommand(s, "get-contexts", "List the contexts; a star marks the current one", cli.NoArgs,
		func(_ *cobra.Command, all *contexts.File, _ []string) error {
			table := tabwriter.NewWriter(s.Stdout, 0, 8, 3, ' ', 0)
			fmt.Fprintln(table, "CURRENT\tNAME\tSERVER\tNAMESPACE")
			for _, c := range all.Contexts {
				current := ""
				if c.Name == all.Current {
					current = "*"
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", current, c.Name, c.Server, c.Namespace)
			}
			return table.Flush()
		})
}

func newUseContext(s *cli.Session) *cobra.Command {
	return configCommand(s, "use-context NAME", "Make a context the current one", oneContext,
		func(_ *cobra.Command, all *contexts.File, args []string) error {
			if _, err := all.Find(args[0]); err != nil {
				return cli.Usage(err)
			}
			all.Current = args[0]
			return wrote(s, all, "context %s is the current one", all.Current)
		})
}

func newSetContext(s *cli.Session) *cobra.Command {
	return configCommand(s, "set-context NAME", "Create a context, or change the settings of one for which there are flags", oneContext,
		func(cmd *cobra.Command, all *contexts.File, args []string) error {
			if err := checkContext(s, cmd, args[0]); err != nil {
				return err
			}
			c, err := all.Find(args[0])
			what := "replaced"
			if err != nil {
				all.Contexts = append(all.Contexts, contexts.Context{Name: args[0]})
				c, what = &all.Contexts[len(all.Contexts)-1], "created"
			}
			if cmd.Flags().Changed("server") {
				c.Server = s.Server
			}
			if cmd.Flags().Changed("namespace") {
				c.Namespace = s.Namespace
			}
			if err := c.Take(s.Access, cmd.Flags().Changed); err != nil {
				return cli.Usage(err)
			}
			return wrote(s, all, "context %s %s", c.Name, what)
		})
}

// contextName matches names that need no quoting in shells and tables.
var contextName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:/@-]{0,251}[A-Za-z0-9])?$`)

// checkContext refuses a context that no other command could use.
func checkContext(s *cli.Session, cmd *cobra.Command, name string) error {
	if !contextName.MatchString(name) {
		return cli.Usagef("context %q: a name has letters, digits and . _ - : / @, and begins and ends with a letter or digit", name)
	}
	if cmd.Flags().Changed("token") {
		return cli.Usagef("--token: the config file has no tokens; put it into a file, and name that with --token-file")
	}
	if err := s.CheckFlags(); err != nil || !cmd.Flags().Changed("server") {
		return err
	}
	if strings.TrimSpace(s.Server) == "" {
		return cli.Usagef("--server is empty: is a variable not set?")
	}
	if _, err := client.New(cli.ServerURL(s.Server), client.Options{}); err != nil {
		return cli.Usagef("--server: %w", err)
	}
	return nil
}

// wrote writes the file and then prints what was done.
func wrote(s *cli.Session, all *contexts.File, format string, args ...any) error {
	if err := all.Write(); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	_, err := fmt.Fprintf(s.Stdout, format+"\n", args...)
	return err
}

func newDeleteContext(s *cli.Session) *cobra.Command {
	return configCommand(s, "delete-context NAME", "Forget a context", oneContext,
		func(_ *cobra.Command, all *contexts.File, args []string) error {
			if _, err := all.Find(args[0]); err != nil {
				return cli.Usage(err)
			}
			all.Contexts = slices.DeleteFunc(all.Contexts, func(c contexts.Context) bool { return c.Name == args[0] })
			if all.Current != args[0] {
				return wrote(s, all, "context %s deleted", args[0])
			}
			all.Current = ""
			return wrote(s, all, "context %s deleted; none is the current one now: without --context, --server or ISTIOCTL_SERVER, %s is meant", args[0], cli.DefaultServer)
		})
}

func newCurrentContext(s *cli.Session) *cobra.Command {
	return configCommand(s, "current-context", "Print the name of the current context", cli.NoArgs,
		func(_ *cobra.Command, all *contexts.File, _ []string) error {
			if all.Current == "" {
				return errors.New("no context is the current one: 'istioctl config use-context NAME' makes one")
			}
			fmt.Fprintln(s.Stdout, all.Current)
			return nil
		})
}

func newViewConfig(s *cli.Session) *cobra.Command {
	return configCommand(s, "view", "Print the config file", cli.NoArgs,
		func(_ *cobra.Command, all *contexts.File, _ []string) error {
			text, err := printer.MarshalYAML(all)
			if err != nil {
				return err
			}
			_, err = s.Stdout.Write(text)
			return err
		})
}
