package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server/proxyauth"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/document"
	"github.com/pilot-api/pilot-api/store/etcd/register"
)

// accessOptions are the flags that say who may use the API.
type accessOptions struct {
	tls       rotation.Files // of --listen and --discovery-listen; the authorities are those of clients
	clientCRL string
	tokenFile string
	issuer    authn.Issuer // by flags
	issuers   string       // a file with more
	anonymous string
	// accountKeys is a file with the keys of tokens of ServiceAccounts.
	accountKeys string
	// authorization decides what users may do.
	authorization string
	peerCA        string
	// proxyAuth is how proxies prove themselves.
	proxyAuth string
	// proxyMaxNodes bounds the proxies of one account.
	proxyMaxNodes int

	auditLog    string
	auditPolicy string
	auditStrict bool
}

// The values of --authorization.
const (
	authorizeByRoles = "rbac"
	authorizeAll     = "none"
)

// The values of --proxy-auth.
const (
	proxiesByNothing     = "none"
	proxiesByToken       = "token"
	proxiesByCertificate = "mtls"
	proxiesByEither      = "token,mtls"
)

// The values of --anonymous.
const (
	anonymousNone  = "none"
	anonymousRead  = "read"
	anonymousAdmin = "admin"
)

func (a *accessOptions) register(f *pflag.FlagSet) {
	f.StringVar(&a.tls.CertificateFile, "tls-cert", "", "file with the server certificate and its chain for --listen and --discovery-listen, which then accept only TLS, and for --grpc-listen unless it has its own; read again when it changes")
	f.StringVar(&a.tls.KeyFile, "tls-key", "", "file with the key of --tls-cert")
	f.StringVar(&a.tls.CAFile, "client-ca", "", "file with the authorities of certificates that prove users: the common name is the user, the organizations are the groups; read again when it changes")
	f.StringVar(&a.clientCRL, "client-crl", "", "file with lists of revoked certificates of users, in PEM; read again when it changes")
	f.StringVar(&a.tokenFile, "token-file", "", `file with tokens that prove users, lines of token,user,uid,"group1,group2"; read again when it changes`)
	f.StringVar(&a.accountKeys, "account-keys", "", "file with Ed25519 keys in PEM for tokens of ServiceAccounts: the first one signs, and all of them verify; read again when it changes (default one key, which the servers keep in etcd)")
	f.StringVar(&a.issuer.URL, "oidc-issuer", "", "https URL of an OpenID Connect issuer whose tokens prove users")
	f.StringVar(&a.issuer.ClientID, "oidc-client-id", "", "audience that the tokens of --oidc-issuer must have")
	f.StringVar(&a.issuer.UsernameClaim, "oidc-username-claim", "", "claim with the user name (default sub)")
	f.StringVar(&a.issuer.UsernamePrefix, "oidc-username-prefix", "", `prefix of user names; - for none (default ISSUER#, and none for the claim email)`)
	f.StringVar(&a.issuer.GroupsClaim, "oidc-groups-claim", "", "claim with the groups; without it, users of the issuer have none")
	f.StringVar(&a.issuer.GroupsPrefix, "oidc-groups-prefix", "", "prefix of groups")
	f.StringVar(&a.issuer.CAFile, "oidc-ca", "", "file with the authorities of the issuer's server (default those of the system)")
	f.StringVar(&a.issuers, "oidc-issuers", "", "file with several issuers, a YAML list of {issuer, clientID, usernameClaim, usernamePrefix, groupsClaim, groupsPrefix, caFile}")
	f.StringVar(&a.anonymous, "anonymous", "", "rights of requests without a proof: none, read (everything but Secrets) or admin (default admin if no proof is asked for, else none)")
	f.StringVar(&a.authorization, "authorization", "", "rights of users: rbac (those of the stored roles and bindings) or none (every user with a proof may do everything) (default rbac if proofs are asked for)")
	f.StringVar(&a.proxyAuth, "proxy-auth", proxiesByNothing, "how proxies prove themselves: none, token (of a ServiceAccount, for the audience pilot-api-xds), mtls (a certificate of --grpc-client-ca or --ca with the SPIFFE ID of a ServiceAccount), or token,mtls")
	f.IntVar(&a.proxyMaxNodes, "proxy-max-nodes", proxyauth.DefaultMaxNodes, "proxies of one ServiceAccount at one time, with --proxy-auth; more are refused")
	f.StringVar(&a.auditLog, "audit-log", "", "file to which the server writes a line of JSON for each request that changes something or is refused, or - for standard output; the file is rotated at 100 MiB, and 10 older ones are kept")
	f.StringVar(&a.auditPolicy, "audit-policy", "", "file that says which requests are in --audit-log, and whether with their objects, a Policy of audit.k8s.io/v1; refusals always are")
	f.BoolVar(&a.auditStrict, "audit-strict", false, "do nothing, and acknowledge nothing, before its event is on the disk of --audit-log")
	f.StringVar(&a.peerCA, "peer-ca", "", "file with the authorities by which replicas verify each other's --tls-cert (default those of the system)")
}

// isAsked reports whether the flags ask for proofs of users.
func (a *accessOptions) isAsked() bool {
	return a.tls.CAFile != "" || a.tokenFile != "" || a.issuer.URL != "" || a.issuers != ""
}

// keepsOut reports whether strangers can do nothing at a listener: it uses TLS, and proofs
// are asked for.
func (a *accessOptions) keepsOut() bool {
	return a.tls.CertificateFile != "" && a.isAsked() && (a.anonymous == "" || a.anonymous == anonymousNone)
}

// byRoles reports whether roles decide what users may do.
func (a *accessOptions) byRoles() bool {
	return a.authorization == authorizeByRoles || a.authorization == "" && a.isAsked()
}

// provesProxies reports whether proxies must prove themselves.
func (a *accessOptions) provesProxies() bool {
	return a.proxyAuth != "" && a.proxyAuth != proxiesByNothing
}

func (a *accessOptions) provesByToken() bool {
	return a.proxyAuth == proxiesByToken || a.proxyAuth == proxiesByEither
}

func (a *accessOptions) provesByCertificate() bool {
	return a.proxyAuth == proxiesByCertificate || a.proxyAuth == proxiesByEither
}

func (a *accessOptions) validate() error {
	usage := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", errUsage, fmt.Errorf(format, args...))
	}
	switch {
	case (a.tls.CertificateFile == "") != (a.tls.KeyFile == ""):
		return usage("--tls-cert and --tls-key go together")
	case a.tls.CAFile != "" && a.tls.CertificateFile == "":
		return usage("--client-ca needs --tls-cert and --tls-key: certificates are shown over TLS only")
	case a.clientCRL != "" && a.tls.CAFile == "":
		return usage("--client-crl needs --client-ca")
	case (a.issuer.URL == "") != (a.issuer.ClientID == ""):
		return usage("--oidc-issuer and --oidc-client-id go together: tokens for other programs must not count here")
	case a.issuer.URL == "" && a.issuer != authn.Issuer{}:
		return usage("the flags --oidc-… need --oidc-issuer")
	case a.anonymous != "" && !slices.Contains([]string{anonymousNone, anonymousRead, anonymousAdmin}, a.anonymous):
		return usage("--anonymous %q: must be none, read or admin", a.anonymous)
	case !slices.Contains([]string{proxiesByNothing, proxiesByToken, proxiesByCertificate, proxiesByEither}, a.proxyAuth):
		return usage("--proxy-auth %q: must be none, token, mtls, or both with a comma", a.proxyAuth)
	case a.provesProxies() && !a.byRoles():
		return usage("--proxy-auth %s needs roles, which say what proxies may claim: ask users for proofs (--client-ca, --token-file, --oidc-issuer)", a.proxyAuth)
	case a.proxyMaxNodes < 1:
		return usage("--proxy-max-nodes %d: must be 1 or more", a.proxyMaxNodes)
	case a.auditLog == "" && (a.auditPolicy != "" || a.auditStrict):
		return usage("--audit-policy and --audit-strict need --audit-log")
	case a.auditLog == "-" && a.auditStrict:
		return usage("--audit-strict needs a file: nobody knows when standard output is on a disk")
	case a.authorization != "" && a.authorization != authorizeByRoles && a.authorization != authorizeAll:
		return usage("--authorization %q: must be rbac or none", a.authorization)
	case a.authorization == authorizeByRoles && !a.isAsked():
		return usage("--authorization rbac needs proofs of users (--client-ca, --token-file, --oidc-issuer): nobody would have a role")
	case a.accountKeys != "" && !a.isAsked() && a.anonymous != anonymousRead:
		return usage("--account-keys needs proofs of users (--client-ca, --token-file, --oidc-issuer): without them nobody gets or shows a token")
	case a.anonymous == anonymousNone && !a.isAsked():
		return usage("--anonymous none keeps everybody out: say how users prove themselves (--client-ca, --token-file, --oidc-issuer)")
	}
	return nil
}

// access proves users. Its followers read files and ask issuers until their context ends.
type access struct {
	authn     *authn.Authenticator // nil if no proof is asked for
	tokens    *authn.AccountTokens // nil with authn
	accounts  *authn.Accounts
	known     *accessKnown
	followers []func(context.Context) error
}

// access returns what proves users; key proves the other replicas, nil if there are none.
func (o *options) newAccess(ends *tlsEnd, b backend, key *authn.ReplicaKey, log *slog.Logger, reg prometheus.Registerer) (access, error) {
	a := &o.access
	out := access{known: newAccessKnown()}
	if !a.isAsked() && a.anonymous != anonymousRead {
		return out, nil
	}
	opts := authn.Options{Log: log, Registry: reg, Anonymous: a.nobody()}
	if a.tls.CAFile != "" {
		certificates, err := authn.NewCertificates(authn.CertificateOptions{Authorities: ends.authorities, CRLFile: a.clientCRL, Log: log})
		if err != nil {
			return out, err
		}
		opts.Certificates, out.followers = certificates, append(out.followers, certificates.Run)
	}
	if a.tokenFile != "" {
		tokens, err := authn.NewTokenFile(a.tokenFile, log)
		if err != nil {
			return out, err
		}
		opts.Tokens, out.followers = append(opts.Tokens, tokens), append(out.followers, tokens.Run)
	}
	issuers, err := a.allIssuers()
	if err != nil {
		return out, err
	}
	for _, issuer := range issuers {
		verifier, err := authn.NewOIDC(issuer, log)
		if err != nil {
			return out, err
		}
		opts.Tokens, out.followers = append(opts.Tokens, verifier), append(out.followers, verifier.Run)
	}
	if key != nil {
		opts.Tokens = append(opts.Tokens, key)
	}
	out.accounts = &authn.Accounts{}
	out.tokens = authn.NewAccountTokens(out.accounts)
	opts.Tokens = append(opts.Tokens, out.tokens.For(authn.AudienceAPI))
	follow, err := a.followAccountKeys(out.tokens, b, o.etcdPrefix, out.known, log)
	if err != nil {
		return out, err
	}
	out.tokens.ShareRevoked(document.New(b.client, o.etcdPrefix, etcd.RevokedTokensName, log))
	read := out.known.awaits()
	out.followers = append(out.followers, follow, func(ctx context.Context) error { return out.tokens.FollowRevoked(ctx, read) })
	out.authn = authn.New(opts)
	return out, nil
}

// openAudit opens the audit log; nil if there is none.
func (a *accessOptions) openAudit(log *slog.Logger, reg prometheus.Registerer) (*audit.Log, error) {
	if a.auditLog == "" {
		return nil, nil
	}
	opts := audit.Options{File: a.auditLog, Strict: a.auditStrict, Log: log, Registry: reg}
	if a.auditPolicy != "" {
		text, err := os.ReadFile(a.auditPolicy)
		if err == nil {
			opts.Policy, err = audit.ParsePolicy(text)
		}
		if err != nil {
			return nil, fmt.Errorf("--audit-policy %s: %w", a.auditPolicy, err)
		}
	}
	return audit.New(opts)
}

// followAccountKeys returns what sets the keys of tokens: those of the file, or one that the
// servers share in etcd.
func (a *accessOptions) followAccountKeys(tokens *authn.AccountTokens, b backend, prefix string, known *accessKnown, log *slog.Logger) (func(context.Context) error, error) {
	if a.accountKeys != "" {
		return authn.FollowAccountKeys(a.accountKeys, tokens, log)
	}
	read := known.awaits()
	return func(ctx context.Context) error {
		seed, err := register.SharedKey(ctx, b.client, prefix, register.TokenKey)
		if err != nil {
			return err
		}
		tokens.SetKeys([]ed25519.PrivateKey{ed25519.NewKeyFromSeed(seed)})
		read()
		<-ctx.Done()
		return ctx.Err()
	}, nil
}

// prover returns what proves proxies; nil if they need no proof.
func (a *accessOptions) prover(users access, certificates *authn.Certificates, roles *authz.Roles, trustDomain string) *proxyauth.Prover {
	opts := proxyauth.Options{TrustDomain: trustDomain, Authorizer: roles}
	if !a.provesProxies() {
		return nil
	}
	if a.provesByCertificate() {
		opts.Certificates = certificates
	}
	if a.provesByToken() {
		opts.Tokens = authn.New(authn.Options{Tokens: []authn.TokenVerifier{users.tokens.For(authn.AudienceXDS)}})
	}
	opts.MaxNodes = a.proxyMaxNodes
	return proxyauth.New(opts)
}

// nobody returns the identity of requests without a proof, nil if they are refused.
func (a *accessOptions) nobody() *identity.Identity {
	var who identity.Identity
	switch a.anonymous {
	case anonymousRead:
		who = identity.Nobody(authz.Readers)
	case anonymousAdmin:
		who = identity.Nobody(identity.Masters)
	default:
		return nil
	}
	return &who
}

// allIssuers returns the issuers of the flags and of the file.
func (a *accessOptions) allIssuers() ([]authn.Issuer, error) {
	var all []authn.Issuer
	if a.issuers != "" {
		text, err := os.ReadFile(a.issuers)
		if err == nil {
			err = yaml.UnmarshalStrict(text, &all)
		}
		if err == nil && len(all) == 0 {
			err = errors.New("it has no issuers")
		}
		if err != nil {
			return nil, fmt.Errorf("--oidc-issuers %s: %w", a.issuers, err)
		}
	}
	if a.issuer.URL != "" {
		all = append(all, a.issuer)
	}
	return all, nil
}
