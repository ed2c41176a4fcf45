package token

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/store"
)

// maxToken bounds a file with a token, in bytes.
const maxToken = 64 << 10

// revokeOptions are the values of the flags of token revoke.
type revokeOptions struct {
	connect func(warn func(string)) (Tokens, error)
	from    string
}

func newRevoke(s *cli.Session) *cobra.Command {
	flags := revokeOptions{connect: connectTo(s)}
	cmd := &cobra.Command{
		Use:   "revoke (ACCOUNT ID | --from FILE)",
		Short: "End a token of a service account before its time",
		Long: `End a token of a ServiceAccount before its time. The token proves nothing from then on.
Watches and streams that it has opened end within seconds. The other tokens of the
account remain valid.

The ID is the claim jti of the token. 'istioctl token create' prints it, and the server
shows it to the owner of the token ('kubectl auth whoami') as
authentication.kubernetes.io/credential-id. With --from the command reads account,
namespace and ID from the token.`,
		Example: `  # End the token in a file
  istioctl token revoke --from deployer.token

  # End a token that nobody has any more
  istioctl token revoke deployer 4WLSJDPXSU6RLSZ6QHRSNBTSTY-69a2f1c0 -n shop`,
		Args: func(_ *cobra.Command, args []string) error {
			if flags.from == "" && len(args) != 2 || flags.from != "" && len(args) != 0 {
				return cli.Usagef("say which token: istioctl token revoke ACCOUNT ID, or istioctl token revoke --from FILE")
			}
			return nil
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return flags.run(cmd.Context(), s, args) }
	cmd.Flags().StringVar(&flags.from, "from", "", "file with the token")
	return cmd
}

func (o revokeOptions) run(ctx context.Context, s *cli.Session, args []string) error {
	var of issued
	if o.from != "" {
		text, err := wholefile.ReadAtMost(o.from, maxToken)
		if err == nil {
			of, err = read(strings.TrimSpace(string(text)))
		}
		if err != nil {
			return fmt.Errorf("--from %s: %w", o.from, err)
		}
	} else {
		of = issued{s.Namespace, args[0], args[1]}
	}
	c, err := o.connect(s.Warn)
	if err != nil {
		return err
	}
	err = c.RevokeToken(ctx, of.namespace, of.account, of.id)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no ServiceAccount %s in namespace %s, or no token can have the ID %q", of.account, of.namespace, of.id)
	}
	if err != nil {
		return s.Fail(ctx, err)
	}
	_, err = fmt.Fprintf(s.Stdout, "token %s of serviceaccount/%s revoked in namespace %s\n", of.id, of.account, of.namespace)
	return err
}

// issued names a token.
type issued struct{ namespace, account, id string }

// read returns the name of a token. The server that gets the name checks it. The error has no
// part of the token.
func read(token string) (issued, error) {
	var claims struct {
		jwt.RegisteredClaims
		Kubernetes struct {
			Namespace      string `json:"namespace"`
			ServiceAccount struct {
				Name string `json:"name"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	_, _, err := jwt.NewParser().ParseUnverified(token, &claims)
	of := issued{claims.Kubernetes.Namespace, claims.Kubernetes.ServiceAccount.Name, claims.ID}
	if err != nil || of.namespace == "" || of.account == "" || of.id == "" {
		return issued{}, errors.New("it has no token of a ServiceAccount")
	}
	return of, nil
}
