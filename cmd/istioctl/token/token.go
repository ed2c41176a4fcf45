package token

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Tokens creates and revokes tokens, and returns the identity of the caller.
type Tokens interface {
	CreateToken(ctx context.Context, namespace, account string, audiences []string, life time.Duration) (client.Token, error)
	RevokeToken(ctx context.Context, namespace, account, id string) error
	WhoAmI(ctx context.Context) (client.User, error)
}

func connectTo(s *cli.Session) func(warn func(string)) (Tokens, error) {
	return func(warn func(string)) (Tokens, error) { return s.Connect(warn) }
}

// Options are the values of the flags of token create.
type Options struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Tokens, error)

	audiences []string
	ttl       time.Duration
	envoyFile string
}

// NewCommand returns the command token, with create and revoke below it.
func NewCommand(s *cli.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Ask for tokens of service accounts, and revoke them",
		Long: `Ask the server for tokens of ServiceAccounts, and revoke them. ServiceAccounts are
the identities of programs: pipelines and proxies. A ServiceAccount is an object like
others: create it with 'istioctl create', and give it rights with a RoleBinding.`,
		Example: `  # A token for a pipeline, for a day
  istioctl token create deployer -n shop --ttl 24h

  # End it before its time
  istioctl token revoke --from deployer.token`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("there is no 'istioctl token %s'", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCreate(s), newRevoke(s))
	return cmd
}

func newCreate(s *cli.Session) *cobra.Command {
	flags := Options{Connect: connectTo(s)}
	cmd := &cobra.Command{
		Use:   "create ACCOUNT",
		Short: "Print a token of a service account",
		Long: `Print a token of a ServiceAccount. The token ends after --ttl, when it is revoked, or
when the ServiceAccount is deleted. The server prints each token only once. The command
prints the ID of the token on standard error; 'istioctl token revoke' accepts it.

With --envoy-file the command writes the token into a file, from which an Envoy reads it
(istioctl bootstrap --xds-token-file). It replaces the file as a whole, and only the
file's owner can read it. A running Envoy uses the new token at once.`,
		Example: `  # A token for a pipeline, for a day
  istioctl token create deployer -n shop --ttl 24h

  # A token by which a proxy proves itself
  istioctl token create web -n shop --audience pilot-api-xds --envoy-file token.yaml`,
		Args: cli.ArgsOr(cobra.ExactArgs(1), "say which account: istioctl token create ACCOUNT"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return flags.Run(cmd.Context(), s, args[0]) }
	cmd.Flags().StringSliceVar(&flags.audiences, "audience", nil, "what the token is for: pilot-api, the API, or pilot-api-xds, proxies (default pilot-api)")
	cmd.Flags().DurationVar(&flags.ttl, "ttl", time.Hour, "how long the token is valid, 10m to 8760h (a year)")
	cmd.Flags().StringVar(&flags.envoyFile, "envoy-file", "", "write the token into this file, in the form that an Envoy reads, and print nothing")
	return cmd
}

// These are the bounds of the server.
const (
	leastTTL = 10 * time.Minute
	mostTTL  = 365 * 24 * time.Hour
)

// Run prints a token of an account.
func (o Options) Run(ctx context.Context, s *cli.Session, account string) error {
	if o.ttl < leastTTL || o.ttl > mostTTL {
		return cli.Usagef("--ttl %s: must be 10m to 8760h (a year)", o.ttl)
	}
	c, err := o.Connect(s.Warn)
	if err != nil {
		return err
	}
	token, err := c.CreateToken(ctx, s.Namespace, account, o.audiences, o.ttl)
	if errors.Is(err, store.ErrNotFound) {
		return errors.New(targets.NotFound(schema.Key{Kind: schema.KindServiceAccount, Namespace: s.Namespace, Name: account}))
	}
	if err != nil {
		return s.Fail(ctx, err)
	}
	if of, err := read(token.Text); err == nil {
		fmt.Fprintf(s.Stderr, "the token has the ID %s and ends at %s\n", of.id, token.End.UTC().Format(time.RFC3339))
	}
	if o.envoyFile == "" {
		_, err = fmt.Fprintln(s.Stdout, token.Text)
		return err
	}
	text, err := envoy.TokenSecret(token.Text)
	if err == nil {
		err = wholefile.WriteText(o.envoyFile, 0o600, text)
	}
	return err
}

// NewWhoAmICommand returns the command whoami.
func NewWhoAmICommand(s *cli.Session) *cobra.Command {
	connect := connectTo(s)
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show your user name and groups",
		Long: `Show the user name and the groups that the server knows you by. Roles give rights to
these names. 'kubectl auth can-i --list' shows what you may do.`,
		Example: `  # Who am I for the server of the context prod?
  istioctl whoami --context prod`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connect(s.Warn)
			if err != nil {
				return err
			}
			user, err := c.WhoAmI(cmd.Context())
			if err != nil {
				return s.Fail(cmd.Context(), err)
			}
			_, err = fmt.Fprintf(s.Stdout, "user:   %s\ngroups: %s\n", user.Name, strings.Join(user.Groups, ", "))
			return err
		},
	}
}
