package login

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/contexts"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
)

// printCredential prints the token of a context, as kubectl reads it from a credential plugin.
func printCredential(ctx context.Context, s *cli.Session, of *contexts.Context, file string) error {
	if of.Login == nil {
		return fmt.Errorf("nobody has logged in for the context %s: %w", of.Name, oidclogin.ErrNoLogin)
	}
	source := oidclogin.Source{Issuer: *of.Login, File: file}
	token, end, err := source.Token(ctx)
	if err != nil {
		return fmt.Errorf("context %s: %w", of.Name, err)
	}
	until := metav1.NewTime(end)
	return json.NewEncoder(s.Stdout).Encode(clientauthentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{Kind: "ExecCredential", APIVersion: clientauthentication.SchemeGroupVersion.String()},
		Status:   &clientauthentication.ExecCredentialStatus{Token: token, ExpirationTimestamp: &until},
	})
}
