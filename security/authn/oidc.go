package authn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"github.com/pilot-api/pilot-api/security/identity"
)

// Issuer is an issuer of OpenID Connect tokens, with the claims that name users and groups.
type Issuer struct {
	URL string `json:"issuer"`
	// ClientID is the audience that tokens must have.
	ClientID string `json:"clientID"`
	// UsernameClaim is the claim with the user name (default sub). An email counts only if
	// it is verified.
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is put before user names, so that different issuers do not give the
	// same name (default "URL#", and none for email). "-" means none.
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
	// GroupsClaim is the claim with the groups; "" means that tokens have none.
	GroupsClaim  string `json:"groupsClaim,omitempty"`
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// CAFile has the authorities of the issuer's server; "" means those of the system.
	CAFile string `json:"caFile,omitempty"`
}

// check returns an error for an issuer that cannot be used.
func (i Issuer) check() error {
	switch {
	case !strings.HasPrefix(i.URL, "https://"):
		return fmt.Errorf("issuer %q: must be an https URL", i.URL)
	case i.ClientID == "":
		return fmt.Errorf("issuer %s: clientID is required, because tokens for other programs must not count here", i.URL)
	}
	return nil
}

func (i Issuer) withDefaults() Issuer {
	if i.UsernameClaim == "" {
		i.UsernameClaim = "sub"
	}
	switch {
	case i.UsernamePrefix == "-":
		i.UsernamePrefix = ""
	case i.UsernamePrefix == "" && i.UsernameClaim != "email":
		i.UsernamePrefix = i.URL + "#"
	}
	if i.GroupsPrefix == "-" {
		i.GroupsPrefix = ""
	}
	return i
}

// retryIssuer is the time between two tries to read an issuer's configuration.
const retryIssuer = 10 * time.Second

// OIDC proves tokens of one issuer. Until the issuer has answered once, its tokens prove
// nothing: the error is ErrUndecided, as for a token whose key cannot be fetched.
type OIDC struct {
	issuer   Issuer
	client   *http.Client
	verifier atomic.Pointer[oidc.IDTokenVerifier]
	log      *slog.Logger
	complain rate.Sometimes // about keys that cannot be fetched
}

// NewOIDC returns the verifier of an issuer's tokens. Run asks the issuer for its keys.
func NewOIDC(issuer Issuer, log *slog.Logger) (*OIDC, error) {
	if err := issuer.check(); err != nil {
		return nil, err
	}
	client, err := issuerClient(issuer.CAFile)
	if err != nil {
		return nil, fmt.Errorf("issuer %s: %w", issuer.URL, err)
	}
	return &OIDC{issuer: issuer.withDefaults(), client: client, log: log, complain: rate.Sometimes{Interval: time.Minute}}, nil
}

// Run asks for the issuer's configuration until it has it.
func (o *OIDC) Run(ctx context.Context) error {
	for told := ""; ; {
		// The keys are fetched with the context of the provider, as long as the process runs.
		provider, err := oidc.NewProvider(oidc.ClientContext(ctx, o.client), o.issuer.URL)
		if err == nil {
			o.verifier.Store(provider.Verifier(&oidc.Config{ClientID: o.issuer.ClientID}))
			o.log.Info("tokens of an issuer are accepted", "issuer", o.issuer.URL)
			<-ctx.Done()
			return ctx.Err()
		}
		if told != err.Error() && ctx.Err() == nil {
			told = err.Error()
			o.log.Warn("an issuer does not answer; its tokens prove nothing until it does", "issuer", o.issuer.URL, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryIssuer):
		}
	}
}

// Ready reports whether the issuer has answered.
func (o *OIDC) Ready() bool { return o.verifier.Load() != nil }

// Epoch implements TokenVerifier.
func (o *OIDC) Epoch() uint64 { return 0 }

// Verify implements TokenVerifier.
func (o *OIDC) Verify(ctx context.Context, token string) (identity.Identity, time.Time, error) {
	if issuerOf(token) != o.issuer.URL {
		return identity.Identity{}, time.Time{}, ErrOtherToken
	}
	verifier := o.verifier.Load()
	if verifier == nil {
		return identity.Identity{}, time.Time{}, fmt.Errorf("%w: its issuer %s has not answered yet", ErrUndecided, o.issuer.URL)
	}
	proved, err := verifier.Verify(ctx, token)
	switch {
	case err == nil:
	case strings.HasPrefix(err.Error(), noKeys):
		o.complain.Do(func() {
			o.log.Warn("the keys of an issuer cannot be fetched; tokens that need them prove nothing until then", "issuer", o.issuer.URL, "error", fmt.Sprintf("%.500s", err))
		})
		return identity.Identity{}, time.Time{}, fmt.Errorf("%w: the keys of its issuer %s cannot be fetched", ErrUndecided, o.issuer.URL)
	default:
		// The error may quote the token's claims.
		return identity.Identity{}, time.Time{}, why(err)
	}
	var claims map[string]json.RawMessage
	if err := proved.Claims(&claims); err != nil {
		return identity.Identity{}, time.Time{}, errors.New("its claims cannot be read")
	}
	who, err := o.issuer.identity(claims)
	return who, proved.Expiry, err
}

// noKeys begins the errors of the library for a token whose key it cannot fetch. No part of a
// token stands before that.
const noKeys = "failed to verify signature: fetching keys"

// why returns a failure of verification without any part of the token.
func why(err error) error {
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return fmt.Errorf("it ended at %s", expired.Expiry.UTC().Format(time.RFC3339))
	case strings.Contains(err.Error(), "audience"):
		return errors.New("it is for another audience")
	case strings.Contains(err.Error(), "before the nbf"):
		return errors.New("it is not valid yet")
	}
	return errors.New("its signature is not one of its issuer")
}

// identity reads the user from the claims of a proved token.
func (i Issuer) identity(claims map[string]json.RawMessage) (identity.Identity, error) {
	var name string
	if json.Unmarshal(claims[i.UsernameClaim], &name) != nil || name == "" {
		return identity.Identity{}, fmt.Errorf("it has no claim %s with a user name", i.UsernameClaim)
	}
	if i.UsernameClaim == "email" {
		verified := true
		if text, given := claims["email_verified"]; given && (json.Unmarshal(text, &verified) != nil || !verified) {
			return identity.Identity{}, errors.New("its email address is not verified")
		}
	}
	who := identity.Identity{Name: i.UsernamePrefix + name, By: identity.ByOIDC}
	if strings.HasPrefix(who.Name, identity.Reserved) {
		return identity.Identity{}, fmt.Errorf("its user name begins with %s, which issuers may not give", identity.Reserved)
	}
	groups, err := i.groups(claims)
	who.Groups = append(groups, identity.Authenticated)
	return who, err
}

// groups reads the groups, which may be one text or a list.
func (i Issuer) groups(claims map[string]json.RawMessage) ([]string, error) {
	text, given := claims[i.GroupsClaim]
	if i.GroupsClaim == "" || !given {
		return nil, nil
	}
	var groups []string
	var one string
	if json.Unmarshal(text, &one) == nil {
		groups = []string{one}
	} else if json.Unmarshal(text, &groups) != nil {
		return nil, fmt.Errorf("its claim %s is no list of groups", i.GroupsClaim)
	}
	for n, group := range groups {
		if groups[n] = i.GroupsPrefix + group; strings.HasPrefix(groups[n], identity.Reserved) {
			return nil, fmt.Errorf("one of its groups begins with %s, which issuers may not give", identity.Reserved)
		}
	}
	return groups, nil
}

// issuerOf returns the issuer that a token names, unverified, and "" if the token is no
// JSON Web Token.
func issuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Issuer
}
