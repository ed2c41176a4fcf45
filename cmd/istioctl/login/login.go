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
type Options struct {
	issuer         oidclogin.Issuer
	device         bool
	port           int
	execCredential bool
}

// NewCommand returns the command login.
func NewCommand(s *cli.Session) *cobra.Command {
	var flags Options
	cmd := &cobra.Command{
		Use:   "login [CONTEXT]",
		Short: "Log in at the issuer of a server",
		Long: `Log in at an OpenID Connect issuer (pilot-api --oidc-issuer). The command opens the page
of the issuer in the browser that BROWSER names, or in that of the desktop. The issuer
sends the browser back to a port of this machine. Without a browser, or with --device,
the command shows the address of a page that you open on any device, and a code to enter
there.

The context, the current one by default, keeps the issuer. From then on it uses the
issuer's tokens instead of the credentials that it had. istioctl gets a new token before
the last one ends. The tokens are in a file beside the config file that only you can read.

Name the issuer at the first login only.

With --exec-credential the command does not log in. It prints the token of the last login
for kubectl, which runs the command as a credential plugin. If that token is about to end,
the command gets a new one first.`,
		Example: `  # Log in for the context prod
  istioctl config set-context prod --server https://pilot.example.com
  istioctl login prod --oidc-issuer https://login.example.com --oidc-client-id pilot

  # Log in again, with a browser on another machine
  istioctl login prod --device

  # Let kubectl use the login
  kubectl config set-credentials prod --exec-api-version client.authentication.k8s.io/v1 \
    --exec-command istioctl --exec-arg login --exec-arg prod --exec-arg --exec-credential`,
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
	f.BoolVar(&flags.device, "device", false, "open no browser on this machine: show a page and a code for any device")
	f.IntVar(&flags.port, "redirect-port", 0, "port of 127.0.0.1 to which the issuer sends the browser back, if the issuer does not allow every port (default any free one)")
	f.BoolVar(&flags.execCredential, "exec-credential", false, "print the token of the last login as an ExecCredential of client.authentication.k8s.io/v1, for kubectl")
	return cmd
}

// Run logs in for a context, "" for the current one, or prints its token.
func (o Options) Run(ctx context.Context, s *cli.Session, name string) error {
	if o.port < 0 || o.port > 65535 {
		return cli.Usagef("--redirect-port %d: must be 0 to 65535", o.port)
	}
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
	if o.execCredential {
		return printCredential(ctx, s, c, all.LoginFile(c))
	}
	issuer, err := o.issuerOf(c)
	if err != nil {
		return err
	}
	if err := oidclogin.Login(ctx, issuer, all.LoginFile(c), o.ways(s)); err != nil {
		return err
	}
	c.LogIn(issuer)
	if err := all.Write(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "logged in for the context %s\n", c.Name)
	return err
}

// issuerOf returns the issuer of the flags, or else that of the last login of a context.
func (o Options) issuerOf(c *contexts.Context) (oidclogin.Issuer, error) {
	issuer := o.issuer
	if issuer.URL == "" && c.Login != nil {
		issuer = *c.Login
	}
	if issuer.URL == "" || issuer.ClientID == "" {
		return issuer, cli.Usagef("say where to log in: --oidc-issuer and --oidc-client-id")
	}
	var err error
	if issuer.CAFile != "" {
		issuer.CAFile, err = filepath.Abs(issuer.CAFile)
	}
	return issuer, err
}

// ways returns the ways to log in on this machine.
func (o Options) ways(s *cli.Session) oidclogin.Ways {
	out := oidclogin.Ways{Port: o.port, Tell: func(page, code string) {
		if code == "" {
			fmt.Fprintf(s.Stderr, "Log in with a browser on this machine, or press Ctrl-C and use --device: %s\n", page)
			return
		}
		fmt.Fprintf(s.Stderr, "Open %s and enter the code %s\n", page, code)
	}}
	if command := browser(s.Getenv); command != nil && !o.device {
		out.Open = func(page string) error { return start(append(command, page)) }
	}
	return out
}
