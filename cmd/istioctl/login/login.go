package login

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/contexts"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
)

// Options are the values of the flags of login.
type Options struct{ issuer oidclogin.Issuer }

// NewCommand returns the command login.
func NewCommand(s *cli.Session) *cobra.Command {
	var flags Options
	cmd := &cobra.Command{
		Use:   "login [CONTEXT]",
		Short: "Log in at the issuer of a server",
		Long: `Log in at an OpenID Connect issuer (pilot-api --oidc-issuer), by a page that you open on
any device. The context, the current one by default, keeps the issuer and uses its tokens
from then on, instead of the credentials that it had: istioctl gets a new token before
the last one ends. The tokens are in a file beside the config file that only you can read.

The issuer is needed for the first login only.`,
		Example: `  # Log in for the context prod
  istioctl config set-context prod --server https://pilot.example.com
  istioctl login prod --oidc-issuer https://login.example.com --oidc-client-id pilot

  # Log in again
  istioctl login prod`,
		Args: cli.AtMostOneArg,
		// As for config: a login must work when nothing else does.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: s.CompleteContexts,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		return flags.Run(cmd.Context(), s, name)
	}
	f := cmd.Flags()
	f.StringVar(&flags.issuer.URL, "oidc-issuer", "", "https URL of the issuer")
	f.StringVar(&flags.issuer.ClientID, "oidc-client-id", "", "name of this program at the issuer, which is the audience of its tokens")
	f.StringVar(&flags.issuer.CAFile, "oidc-ca", "", "file with the authorities of the issuer's server")
	f.StringSliceVar(&flags.issuer.Scopes, "oidc-scope", nil, "scopes besides openid and offline_access, such as email or groups")
	return cmd
}

// Run logs in for a context, "" for the current one.
func (o Options) Run(ctx context.Context, s *cli.Session, name string) error {
	all, err := contexts.Read(s.Getenv)
	if err != nil {
		return err
	}
	if name == "" {
		name = all.Current
	}
	if name == "" {
		return cli.Usagef("no context is the current one: say which, istioctl login CONTEXT")
	}
	c, err := all.Find(name)
	if err != nil {
		return cli.Usage(err)
	}
	issuer := o.issuer
	if issuer.URL == "" && c.Login != nil {
		issuer = *c.Login
	}
	if issuer.URL == "" || issuer.ClientID == "" {
		return cli.Usagef("say where to log in: --oidc-issuer and --oidc-client-id")
	}
	if issuer.CAFile != "" {
		if issuer.CAFile, err = filepath.Abs(issuer.CAFile); err != nil {
			return err
		}
	}
	err = oidclogin.Login(ctx, issuer, all.LoginFile(c), func(page, code string) {
		fmt.Fprintf(s.Stderr, "Open %s and enter the code %s\n", page, code)
	})
	if err != nil {
		return err
	}
	c.LogIn(issuer)
	if err := all.Write(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "logged in for the context %s\n", c.Name)
	return err
}
