package server

import (
	"errors"
	"net/http"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// tokenPath gives tokens of ServiceAccounts, as in Kubernetes.
const tokenPath = "/api/" + coreVersion + "/namespaces/{namespace}/serviceaccounts/{name}/token"

// revokePath is that of one token, by its claim jti. Only its deletion is possible.
const revokePath = tokenPath + "/{id}"

// Bounds of the life of a token.
const (
	defaultTokenLife = time.Hour
	shortestToken    = 10 * time.Minute
	longestToken     = 365 * 24 * time.Hour
	mostAudiences    = 10
)

// token answers a TokenRequest with a token of a ServiceAccount.
func (s *Server) token(w http.ResponseWriter, r *http.Request) error {
	var asked authentication.TokenRequest
	if err := readReview(r, &asked); err != nil {
		return err
	}
	if s.opts.Tokens == nil {
		return errNoTokens
	}
	claims, err := s.tokenClaims(r, asked.Spec)
	if err != nil {
		return err
	}
	text, end, err := s.opts.Tokens.Issue(claims)
	if errors.Is(err, authn.ErrNoKey) {
		return &store.Error{Kind: store.ErrUnavailable, Detail: err.Error()}
	}
	if err != nil {
		return err
	}
	asked.TypeMeta = metav1.TypeMeta{Kind: "TokenRequest", APIVersion: whoVersion}
	seconds := int64(claims.Life / time.Second)
	asked.Spec.Audiences, asked.Spec.ExpirationSeconds = claims.Audiences, &seconds
	asked.Name, asked.Namespace = claims.Name, claims.Namespace
	asked.Status = authentication.TokenRequestStatus{Token: text, ExpirationTimestamp: metav1.NewTime(end)}
	return writeReview(w, r, asked)
}

// errNoTokens answers requests for tokens if they prove nothing.
var errNoTokens = wire.Failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
	"tokens mean nothing here, because the server asks for no proofs: start it with --client-ca, --token-file or --oidc-issuer")

// revokeToken ends a token of a ServiceAccount before its time.
func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	if err := wire.CheckParams(wire.Query(r), nil); err != nil {
		return err
	}
	if s.opts.Tokens == nil {
		return errNoTokens
	}
	account, err := s.account(r)
	if err != nil {
		return err
	}
	id := wire.PathParam(r, "id")
	err = s.opts.Tokens.Revoke(r.Context(), authn.RevokedToken{Namespace: account.Meta.Namespace, UID: string(account.Meta.UID), ID: id})
	switch {
	case errors.Is(err, authn.ErrNoToken):
		return apierrors.NewNotFound(runtimeschema.GroupResource{Resource: "serviceaccounts/token"}, id)
	case errors.Is(err, authn.ErrTooManyRevoked):
		return wire.Failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "%v", err)
	case err != nil:
		return &store.Error{Kind: store.ErrUnavailable, Detail: err.Error()}
	}
	return answer.WriteJSON(w, r, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

// account returns the ServiceAccount of a request.
func (s *Server) account(r *http.Request) (*schema.Object, error) {
	key := schema.Key{Kind: schema.KindServiceAccount, Namespace: wire.PathParam(r, "namespace"), Name: wire.PathParam(r, "name")}
	return s.opts.Reads.Get(r.Context(), key, store.ReadOptions{})
}

// tokenClaims returns the claims of the token that is asked for.
func (s *Server) tokenClaims(r *http.Request, asked authentication.TokenRequestSpec) (authn.AccountClaims, error) {
	life := defaultTokenLife
	if asked.ExpirationSeconds != nil {
		life = time.Duration(min(*asked.ExpirationSeconds, int64(longestToken/time.Second)+1)) * time.Second
	}
	audiences := asked.Audiences
	if len(audiences) == 0 {
		audiences = []string{authn.AudienceAPI}
	}
	switch {
	case life < shortestToken || life > longestToken:
		return authn.AccountClaims{}, wire.BadRequest("spec.expirationSeconds: must be %d to %d", int64(shortestToken/time.Second), int64(longestToken/time.Second))
	case len(audiences) > mostAudiences:
		return authn.AccountClaims{}, wire.BadRequest("spec.audiences: must have at most %d", mostAudiences)
	case asked.BoundObjectRef != nil:
		return authn.AccountClaims{}, wire.BadRequest("spec.boundObjectRef: is not supported, because there are no Pods, Nodes and Secrets of v1 here: a token ends with its ServiceAccount, or by DELETE of …/token/ID")
	}
	o, err := s.account(r)
	if err != nil {
		return authn.AccountClaims{}, err
	}
	return authn.AccountClaims{Namespace: o.Meta.Namespace, Name: o.Meta.Name, UID: string(o.Meta.UID), Audiences: audiences, Life: life}, nil
}
