package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// options holds the flags. A change of them needs a restart.
type options struct {
	listen          string
	discoveryListen string
	grpcListen      string
	grpcTLS         mesh.SecretFile
	advertise       string
	insecure        bool

	access    accessOptions
	authority authorityOptions

	dataDir        string
	quotaBytes     int64
	history        int
	maxTransaction int
	etcdEndpoints  []string
	etcdPrefix     string
	etcdCA         string
	etcdCert       string
	etcdKey        string
	etcdUser       string
	etcdPassword   string // a file

	meshConfig string
	domain     string

	limits limits

	keepDisconnected time.Duration
	statusRevisions  string

	logLevel  string
	logFormat string
}

func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address for the API, health and metrics, and for the polls of Envoys unless they have --discovery-listen")
	f.StringVar(&o.discoveryListen, "discovery-listen", "", "address for the polls of Envoys, and for nothing else")
	o.access.register(f)
	o.authority.register(f)
	f.StringVar(&o.grpcListen, "grpc-listen", "127.0.0.1:15010", "address for the streams of Envoys (ADS); if empty, there are no streams")
	f.StringVar(&o.grpcTLS.CertificateFile, "grpc-tls-cert", "", "file with the server certificate and its chain for --grpc-listen, which then accepts only TLS; read again when it changes")
	f.StringVar(&o.grpcTLS.KeyFile, "grpc-tls-key", "", "file with the key of --grpc-tls-cert")
	f.StringVar(&o.grpcTLS.CAFile, "grpc-client-ca", "", "file with the authorities of proxies' certificates: --grpc-listen then accepts only proxies with such a certificate, and sends them private keys")
	f.StringVar(&o.advertise, "advertise", "", "HOST:PORT at which other replicas on the same etcd reach the HTTP server of this one (default --listen); required if --listen is loopback and the others are on other machines")
	f.BoolVar(&o.insecure, "insecure", false, "allow listeners on other addresses than loopback, although everybody who reaches them has access")
	f.StringVar(&o.dataDir, "data-dir", "pilot-data", "folder of the embedded etcd, and of the sockets for proxies of this machine and user")
	f.Int64Var(&o.quotaBytes, "quota-bytes", embedded.DefaultQuotaBytes, "number of bytes that the embedded etcd may store, including history; when it is full, it accepts only deletes")
	f.IntVar(&o.history, "history", etcd.DefaultLimits.History, "number of changes that are kept for each object, with its earlier states; 0 means none")
	f.IntVar(&o.maxTransaction, "max-transaction", 0, fmt.Sprintf("operations in one transaction, at most %d; an external etcd must accept twice as many requests and one more, --max-txn-ops (default %d, or %d with --etcd-endpoints)", store.MaxTxnOps, etcd.EmbeddedLimits.Ops, etcd.DefaultLimits.Ops))
	f.StringSliceVar(&o.etcdEndpoints, "etcd-endpoints", nil, "use these etcd servers instead of the embedded one")
	f.StringVar(&o.etcdPrefix, "etcd-prefix", etcd.DefaultPrefix, "prefix of all keys in etcd")
	f.StringVar(&o.etcdCA, "etcd-ca", "", "file with the certificate authority of the etcd servers")
	f.StringVar(&o.etcdCert, "etcd-cert", "", "file with the client certificate for etcd (with --etcd-key)")
	f.StringVar(&o.etcdKey, "etcd-key", "", "file with the key of --etcd-cert")
	f.StringVar(&o.etcdUser, "etcd-user", "", "user name at etcd (with --etcd-password-file)")
	f.StringVar(&o.etcdPassword, "etcd-password-file", "", "file with the password of --etcd-user")
	f.StringVar(&o.meshConfig, "mesh-config", "", "file with the settings of the whole mesh (docs/reference/mesh-config.md)")
	f.StringVar(&o.domain, "domain", "cluster.local", "suffix of full service names, after NAME.NAMESPACE.svc")
	f.DurationVar(&o.keepDisconnected, "keep-disconnected", 24*time.Hour, "how long proxies that were connected stay in 'istioctl proxy-status', at most 10,000 of them")
	f.StringVar(&o.statusRevisions, "status-revisions", "", "on or off: whether watches of collections get changes of the status, each with a resourceVersion of its own; for all replicas of a store, and remembered there (default as it is there, off in a new store)")
	o.limits.register(f)
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
}

// leastQuota leaves room for a few objects of the maximum size.
const leastQuota = 16 << 20

// validate finds contradictions before anything starts.
func (o *options) validate() error {
	// Flags of these depend on each other, so all mistakes are said at once.
	if err := errors.Join(o.access.validate(), o.validateHTTP(), o.validateStreams(), o.validateAuthority()); err != nil {
		return err
	}
	if len(validation.IsDNS1123Subdomain(o.domain)) > 0 {
		return fmt.Errorf("%w: --domain %q: must be a DNS name, as in cluster.local", errUsage, o.domain)
	}
	if err := o.validateAdvertise(); err != nil {
		return err
	}
	if o.dataDir == "" {
		return fmt.Errorf("%w: --data-dir: must name a folder", errUsage)
	}
	if o.quotaBytes < leastQuota {
		return fmt.Errorf("%w: --quota-bytes %d: must be at least %d", errUsage, o.quotaBytes, int64(leastQuota))
	}
	if o.keepDisconnected < time.Minute {
		return fmt.Errorf("%w: --keep-disconnected %s: must be at least 1m", errUsage, o.keepDisconnected)
	}
	if err := o.limits.validate(); err != nil {
		return err
	}
	if err := o.validateHistory(); err != nil {
		return err
	}
	if err := o.validateStatuses(); err != nil {
		return err
	}
	return o.validateEtcd()
}

// validateHTTP checks the addresses of the HTTP listeners.
func (o *options) validateHTTP() error {
	a := &o.access
	polls := o.discoveryListen != "" || a.provesByToken() // Their proof is the same at any address.
	danger := "change every route: have users prove themselves (--tls-cert and --tls-key, with --client-ca, --token-file or --oidc-issuer), or put it behind something that authenticates and say --insecure"
	if a.keepsOut() {
		danger = "read every route by polling as an Envoy: give polls an address of their own (--discovery-listen), or have Envoys prove themselves (--proxy-auth token)"
	}
	if err := o.validateAddress("--listen", o.listen, "8080", a.keepsOut() && polls || o.insecure, danger); err != nil {
		return err
	}
	if o.discoveryListen == "" {
		return nil
	}
	return o.validateAddress("--discovery-listen", o.discoveryListen, "8081", a.tls.CertificateFile != "" && a.provesProxies() || o.insecure,
		"read every route: have Envoys prove themselves (--tls-cert and --tls-key, with --proxy-auth), or put it behind something that authenticates and say --insecure")
}

// validateStreams checks that the TLS flags for streams are complete.
func (o *options) validateStreams() error {
	given := o.grpcTLS != (mesh.SecretFile{})
	switch {
	case o.grpcListen == "" && given && !o.access.provesByCertificate():
		return fmt.Errorf("%w: --grpc-tls-cert, --grpc-tls-key and --grpc-client-ca need --grpc-listen", errUsage)
	case (o.grpcTLS.CertificateFile == "") != (o.grpcTLS.KeyFile == ""):
		return fmt.Errorf("%w: --grpc-tls-cert and --grpc-tls-key go together", errUsage)
	case given && o.streamFiles().CertificateFile == "":
		return fmt.Errorf("%w: --grpc-client-ca needs --grpc-tls-cert and --grpc-tls-key, or --tls-cert and --tls-key: a proxy shows its certificate over TLS only", errUsage)
	case o.access.provesByCertificate() && o.grpcTLS.CAFile == "" && !o.authority.signs():
		return fmt.Errorf("%w: --proxy-auth %s needs --grpc-client-ca, the authorities of the certificates, or an authority of the mesh (--ca)", errUsage, o.access.proxyAuth)
	case o.access.provesByCertificate() && o.streamFiles().CertificateFile == "":
		return fmt.Errorf("%w: --proxy-auth %s needs --grpc-tls-cert and --grpc-tls-key, or --tls-cert and --tls-key: a proxy shows its certificate over TLS only", errUsage, o.access.proxyAuth)
	case o.grpcListen == "":
		return nil
	}
	proved := o.access.provesProxies() && o.streamFiles().CertificateFile != ""
	return o.validateAddress("--grpc-listen", o.grpcListen, "15010", o.insecure || o.mutual() || proved,
		"read every route: have proxies prove themselves (--proxy-auth), or show certificates (--grpc-tls-cert, --grpc-tls-key, --grpc-client-ca), or put it behind something that authenticates and say --insecure")
}

// mutual reports whether streams require client certificates.
func (o *options) mutual() bool {
	return o.grpcTLS.CAFile != "" && !o.access.provesByToken() && !o.authority.signs()
}

// streamClients returns what is asked of the clients of streams. A workload without a
// certificate comes to --grpc-listen for its first one.
func (o *options) streamClients() tls.ClientAuthType {
	if o.mutual() {
		return tls.RequireAndVerifyClientCert
	}
	return tls.VerifyClientCertIfGiven
}

// pollClients returns what is asked of the clients of --discovery-listen.
func (o *options) pollClients() tls.ClientAuthType {
	if o.access.provesByToken() {
		return tls.VerifyClientCertIfGiven
	}
	return tls.RequireAndVerifyClientCert
}

// pollsByCertificate reports whether Envoys that poll prove themselves by certificates. The
// address of polls is --discovery-listen or, without one, --listen.
func (o *options) pollsByCertificate() bool {
	return o.access.tls.CertificateFile != "" && o.access.provesByCertificate()
}

// streamFiles returns the files of the listener for streams; zero for plain text.
func (o *options) streamFiles() rotation.Files {
	if o.grpcTLS.CertificateFile == "" && o.access.tls.CertificateFile != "" {
		return rotation.Files{CertificateFile: o.access.tls.CertificateFile, KeyFile: o.access.tls.KeyFile, CAFile: o.grpcTLS.CAFile}
	}
	return rotation.Files(o.grpcTLS)
}

func (o *options) validateAddress(flag, address, port string, open bool, danger string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%w: %s %q: must be HOST:PORT, as in 127.0.0.1:%s", errUsage, flag, address, port)
	}
	if !loopbackOnly(address) && !open {
		return fmt.Errorf("%w: %s %s can be reached from other machines, and whoever reaches it can %s", errUsage, flag, address, danger)
	}
	return nil
}

func (o *options) validateHistory() error {
	if o.history < 0 || o.history > 1000 {
		return fmt.Errorf("%w: --history %d: must be 0 to 1000", errUsage, o.history)
	}
	if o.maxTransaction < 0 || o.maxTransaction > store.MaxTxnOps {
		return fmt.Errorf("%w: --max-transaction %d: must be 1 to %d, or 0 for the default", errUsage, o.maxTransaction, store.MaxTxnOps)
	}
	return nil
}

func (o *options) validateEtcd() error {
	if o.etcdPrefix == "" {
		return fmt.Errorf("%w: --etcd-prefix: must not be empty", errUsage)
	}
	if err := validateEndpoints("--etcd-endpoints", o.etcdEndpoints); err != nil {
		return err
	}
	if (o.etcdCert == "") != (o.etcdKey == "") {
		return fmt.Errorf("%w: --etcd-cert and --etcd-key go together", errUsage)
	}
	if (o.etcdUser == "") != (o.etcdPassword == "") {
		return fmt.Errorf("%w: --etcd-user and --etcd-password-file go together", errUsage)
	}
	if len(o.etcdEndpoints) == 0 && (o.etcdCA != "" || o.etcdCert != "" || o.etcdUser != "") {
		return fmt.Errorf("%w: --etcd-ca, --etcd-cert and --etcd-user need --etcd-endpoints: the embedded etcd is not reached over the network", errUsage)
	}
	return nil
}

func validateEndpoints(flag string, urls []string) error {
	for _, e := range urls {
		if u, err := url.Parse(e); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" {
			return fmt.Errorf("%w: %s %q: must be URLs with a port, as in https://10.0.0.1:2379", errUsage, flag, e)
		}
	}
	return nil
}

// validateEmbedded refuses --quota-bytes for an external etcd, which has its own
// quota. A data folder may be set anyway, for example by a unit file for both kinds
// of store. It holds the sockets for proxies on this machine.
func (o *options) validateEmbedded(flags *pflag.FlagSet) error {
	if len(o.etcdEndpoints) > 0 && flags.Changed("quota-bytes") {
		return fmt.Errorf("%w: --quota-bytes is for the embedded etcd and does not go with --etcd-endpoints", errUsage)
	}
	return nil
}

// logger returns a logger that writes to w as the flags say.
func (o *options) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, fmt.Errorf("%w: --log-level %q: must be debug, info, warn or error", errUsage, o.logLevel)
	}
	h := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, h)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, h)), nil
	default:
		return nil, fmt.Errorf("%w: --log-format %q: must be text or json", errUsage, o.logFormat)
	}
}

// maxConnections returns the limit for each listener. Together the limits leave room
// for the other files that the process opens.
func (o *options) maxConnections() int {
	listeners := 1
	if o.grpcListen != "" {
		listeners++
	}
	return cmp.Or(o.limits.maxConnections, admission.DefaultConnections(listeners))
}

// settings returns the mesh settings, from the file if there is one.
func (o *options) settings(log *slog.Logger) (s *mesh.Settings, err error) {
	s = mesh.DefaultSettings()
	if o.meshConfig != "" {
		text, err := os.ReadFile(o.meshConfig)
		if err != nil {
			return nil, fmt.Errorf("--mesh-config: %w", err)
		}
		parsed, problems := mesh.ParseSettings(text, o.meshConfig)
		for _, p := range problems.Warnings() {
			log.Warn("mesh config", "problem", p.String())
		}
		if err := problems.Err(); err != nil {
			return nil, fmt.Errorf("--mesh-config:\n%w", err)
		}
		s = parsed
	}
	s.Domain = o.domain
	s.PrivateFolders, err = privateFolders(o.dataDir)
	return s, err
}

// privateFolders returns the paths of a folder: as given, and with links followed. The
// folder need not exist yet.
func privateFolders(dir string) ([]string, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	names := []string{given}
	for parent, rest := given, ""; ; parent, rest = filepath.Dir(parent), filepath.Join(filepath.Base(parent), rest) {
		real, err := filepath.EvalSymlinks(parent)
		if err == nil {
			if real = filepath.Join(real, rest); real != given {
				names = append(names, real)
			}
			return names, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || parent == filepath.Dir(parent) {
			return nil, fmt.Errorf("--data-dir: %w", err)
		}
	}
}

// storeName describes the store for the log.
func (o *options) storeName() string {
	if len(o.etcdEndpoints) > 0 {
		return "etcd at " + strings.Join(o.etcdEndpoints, ", ")
	}
	return "embedded etcd in " + o.dataDir
}
