package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/ca"
	"github.com/pilot-api/pilot-api/server/csr"
	"github.com/pilot-api/pilot-api/server/proxyauth"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/document"
)

// authorityOptions are the flags of the certificate authority of the mesh.
type authorityOptions struct {
	kind     string
	files    rotation.Files
	storeKey string // a file

	ttl, maxTTL, skew time.Duration
}

// The values of --ca.
const (
	noAuthority    = "none"
	ownAuthority   = "self"
	authorityFiles = "files"
)

func (a *authorityOptions) register(f *pflag.FlagSet) {
	f.StringVar(&a.kind, "ca", noAuthority, "certificate authority of the mesh, which signs certificates of workloads over --grpc-listen: none, self (made by the servers and stored in etcd, encrypted) or files (--ca-cert, --ca-key and --ca-root); needs --proxy-auth")
	f.StringVar(&a.files.CertificateFile, "ca-cert", "", "file with the certificate that signs those of workloads, and its chain; read again when it changes")
	f.StringVar(&a.files.KeyFile, "ca-key", "", "file with the key of --ca-cert")
	f.StringVar(&a.files.CAFile, "ca-root", "", "file with the roots that --ca-cert leads to, which all workloads trust")
	f.StringVar(&a.storeKey, "ca-store-key", "", "file with the key that encrypts the authority of --ca self in etcd, the same for all servers: 32 random bytes in base64 (default ca-store.key in --data-dir with the embedded etcd, which is made with the first authority)")
	f.DurationVar(&a.ttl, "ca-ttl", ca.DefaultTTL, "how long the certificate of a workload lasts if the workload asks for no time")
	f.DurationVar(&a.maxTTL, "ca-max-ttl", ca.DefaultMaxTTL, "longest time that the certificate of a workload may last")
	f.DurationVar(&a.skew, "ca-clock-skew", ca.DefaultSkew, "time before now at which a certificate begins to be valid, for machines whose clocks are behind")
}

// signs reports whether there is an authority.
func (a *authorityOptions) signs() bool { return a.kind != noAuthority }

// validateAuthority returns all mistakes of the flags of the authority.
func (o *options) validateAuthority() error {
	var wrong []error
	need := func(is bool, format string, args ...any) {
		if !is {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	a, files := &o.authority, o.authority.files != rotation.Files{}
	need(slices.Contains([]string{noAuthority, ownAuthority, authorityFiles}, a.kind), "--ca %q: must be none, self or files", a.kind)
	need(!files || a.kind == authorityFiles, "--ca-cert, --ca-key and --ca-root need --ca files")
	need(a.storeKey == "" || a.kind == ownAuthority, "--ca-store-key needs --ca self")
	if a.signs() && len(wrong) == 0 {
		need(a.kind != authorityFiles || a.files.CertificateFile != "" && a.files.KeyFile != "" && a.files.CAFile != "", "--ca files needs --ca-cert, --ca-key and --ca-root")
		need(a.kind != ownAuthority || a.storeKey != "" || len(o.etcdEndpoints) == 0, "--ca self needs --ca-store-key with --etcd-endpoints, the same file for all servers: openssl rand -base64 32")
		need(o.access.provesProxies(), "--ca %s needs --proxy-auth token,mtls: a certificate has the name that its owner proves", a.kind)
		need(o.access.provesProxies() || o.access.isAsked(), "--proxy-auth needs roles: ask users for proofs (--client-ca, --token-file, --oidc-issuer)")
		need(o.access.provesProxies() || o.streamFiles().CertificateFile != "", "--proxy-auth needs --tls-cert and --tls-key, or --grpc-tls-cert and --grpc-tls-key: a proof is shown over TLS only")
		need(o.grpcListen != "", "--ca %s needs --grpc-listen, where workloads ask for certificates", a.kind)
		need(a.maxTTL >= time.Minute, "--ca-max-ttl %v: must be at least 1m", a.maxTTL)
		need(a.ttl >= time.Minute && a.ttl <= max(a.maxTTL, time.Minute), "--ca-ttl %v: must be at least 1m, and at most --ca-max-ttl, which is %v", a.ttl, a.maxTTL)
		need(a.skew >= 0 && a.skew <= 24*time.Hour, "--ca-clock-skew %v: must be 0s to 24h", a.skew)
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", errUsage, errors.Join(wrong...))
}

// authorityFilesName is the name of the files of the authority among all followed files.
const authorityFilesName = "--ca-cert"

// authority is the certificate authority of the mesh. The zero authority signs nothing.
type authority struct {
	*ca.CA
	run func(context.Context) error
	// rotate does a step of the rotation of the root; nil if servers do not make it.
	rotate func(context.Context, ca.Step) error
	revoke func(ctx context.Context, serial string, force bool) error
}

// lists returns what has the lists of revoked certificates; nil for none.
func (a authority) lists() func() ([]*x509.RevocationList, int64) {
	if a.CA == nil {
		return nil
	}
	return func() ([]*x509.RevocationList, int64) {
		trust, _ := a.Trust()
		if trust == nil {
			return nil, 0
		}
		return trust.Lists, trust.Revocations
	}
}

// newAuthority returns the authority of the flags.
func (o *options) newAuthority(trustDomain string, files *rotation.Follower, log *slog.Logger, reg prometheus.Registerer) (authority, error) {
	a := &o.authority
	if !a.signs() {
		return authority{}, nil
	}
	signs, err := ca.New(ca.Options{TrustDomain: trustDomain, TTL: a.ttl, MaxTTL: a.maxTTL, Skew: a.skew, Log: log, Registry: reg})
	if err != nil {
		return authority{}, err
	}
	out := authority{CA: signs}
	if a.kind == authorityFiles {
		follow := func() error { return takeAuthority(signs, files, log) }
		if err := follow(); err != nil {
			return authority{}, err
		}
		out.run = func(ctx context.Context) error { return followAuthority(ctx, follow, files, log) }
	}
	return out, nil
}

// takeAuthority sets the trust to that of the files.
func takeAuthority(signs *ca.CA, files *rotation.Follower, log *slog.Logger) error {
	s := files.State(authorityFilesName)
	trust, err := ca.FromPair(s.Pair)
	if err != nil {
		return fmt.Errorf("--ca-cert, --ca-key and --ca-root: %w", errors.Join(err, problemOf(s)))
	}
	now, _ := signs.Trust()
	if now != nil && now.RootsPEM() == trust.RootsPEM() && now.Issuer.Chain[0].Equal(trust.Issuer.Chain[0]) {
		return nil
	}
	if err := ca.CheckSuccessor(now, trust); err != nil {
		return fmt.Errorf("--ca-cert, --ca-key and --ca-root: %w", err)
	}
	signs.SetTrust(trust)
	log.Info("certificates of workloads are signed by the files of --ca-cert", "issuer", ca.Name(trust.Issuer.Chain[0]), "until", trust.Issuer.Chain[0].NotAfter.UTC())
	return nil
}

func problemOf(s rotation.State) error {
	if s.Problem == "" {
		return nil
	}
	return errors.New(s.Problem)
}

// followAuthority takes the files again when they change, until ctx ends. Files that cannot be
// used leave the last good ones in use.
func followAuthority(ctx context.Context, take func() error, files *rotation.Follower, log *slog.Logger) error {
	for {
		changed := files.Changed()
		if err := take(); err != nil {
			log.Error("the files of the certificate authority cannot be used; the last good ones stay", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// keptIn completes the authority of --ca self, whose document is in etcd.
func (a *authority) keptIn(b backend, o *options, log *slog.Logger) error {
	if a.CA == nil || a.run != nil {
		return nil
	}
	key, err := o.storeKey(log)
	if err != nil {
		return err
	}
	shared := ca.NewShared(a.CA, document.New(b.client, o.etcdPrefix, etcd.AuthorityName, log), key, log)
	a.run, a.rotate, a.revoke = shared.Run, shared.Rotate, shared.Revoke
	return nil
}

// storeKey returns the key of --ca-store-key. The default file may be missing: then it is made
// with the first authority, and with no other.
func (o *options) storeKey(log *slog.Logger) (ca.StoreKey, error) {
	if name := o.authority.storeKey; name != "" {
		sealer, err := readStoreKey(name)
		return ca.StoreKey{Name: name, Sealer: sealer}, err
	}
	name := filepath.Join(o.dataDir, "ca-store.key")
	sealer, err := readStoreKey(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return ca.StoreKey{Name: name, Sealer: sealer}, err
	}
	return ca.StoreKey{Name: name, Make: func() (*ca.Sealer, error) {
		if err := makeStoreKey(name, log); err != nil {
			return nil, fmt.Errorf("--ca self: %w", err)
		}
		return readStoreKey(name)
	}}, nil
}

func readStoreKey(name string) (*ca.Sealer, error) {
	text, err := wholefile.ReadAtMost(name, 4096)
	if err != nil {
		return nil, fmt.Errorf("--ca-store-key: %w", err)
	}
	sealer, err := ca.NewSealer(string(text))
	if err != nil {
		return nil, fmt.Errorf("--ca-store-key %s: %w", name, err)
	}
	return sealer, nil
}

// makeStoreKey writes a random key.
func makeStoreKey(name string, log *slog.Logger) error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // It never fails.
	if err := wholefile.WriteText(name, 0o600, []byte(base64.StdEncoding.EncodeToString(key)+"\n")); err != nil {
		return err
	}
	log.Info("made the key that encrypts the certificate authority in etcd: keep a copy apart from the backups of the store", "file", name)
	return nil
}

// services returns the gRPC services of the authority.
func (a authority) services(users access, proofs *authn.Certificates, trustDomain string, events *audit.Log, log *slog.Logger) []func(grpc.ServiceRegistrar) {
	if a.CA == nil {
		return nil
	}
	prover := proxyauth.New(proxyauth.Options{
		TrustDomain: trustDomain, Certificates: proofs,
		Tokens: authn.New(authn.Options{Tokens: []authn.TokenVerifier{users.tokens.For(authn.AudienceXDS, authn.AudienceIstioCA)}, Log: log}),
	})
	return []func(grpc.ServiceRegistrar){csr.New(csr.Options{Prover: prover, CA: a.CA, Exists: users.accounts.Exists, Audit: events, Log: log}).Register}
}
