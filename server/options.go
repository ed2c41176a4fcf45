package server

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/version"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/ca"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/gate"
	"github.com/pilot-api/pilot-api/server/proxyauth"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/rest"
	"github.com/pilot-api/pilot-api/server/watch"
	"github.com/pilot-api/pilot-api/store"
)

// Options configure a Server. Store and Reads are required. A limit of zero means
// the default in its comment.
type Options struct {
	// Store performs the writes. It must validate objects (store.Strict), because the
	// server relies on it to check the result of a patch.
	Store store.Interface
	// MaxTransaction is the number of operations that Store accepts in one transaction
	// (store.MaxTxnOps). A dry run accepts no more.
	MaxTransaction int
	// Reads answers GET, LIST and WATCH. It is usually the cache over Store.
	Reads store.Reader
	// Discovery answers proxies. If it is nil, the server is only a config store and
	// has no discovery paths.
	Discovery *discovery.Publisher
	// Authn verifies who sends requests to the API. Nil treats every sender as a person on
	// this machine, who may do everything.
	Authn *authn.Authenticator
	// Roles decides what senders may do. Nil means that every known sender may do
	// everything (authz.Open). Hosts finds the namespaces that declare the hosts of rules,
	// and Domain is the suffix of full service names. Both are for Roles.
	Roles  *authz.Roles
	Hosts  *gate.Hosts
	Domain string
	// AccessKnown reports whether Authn, Roles, Hosts and Proxies have read what is stored.
	// Until then requests that they decide are answered with 503. Nil means that they have.
	AccessKnown func() bool
	// Proxies verifies the proxies that poll. Nil trusts the statements of nodes.
	Proxies *proxyauth.Prover
	// Audit records what requests do. Nil records nothing.
	Audit *audit.Log
	// Tokens issues tokens of ServiceAccounts. Nil means that the server issues none.
	Tokens *authn.AccountTokens
	// Authority is the certificate authority of the mesh, nil if there is none. RotateAuthority
	// does a step of the rotation of its root; nil if its root is not made by servers.
	Authority       *ca.CA
	RotateAuthority func(context.Context, ca.Step) error
	// Revoke ends a certificate of the authority, by its serial number; nil as RotateAuthority.
	// With force it ends one that the authority does not know.
	Revoke func(ctx context.Context, serial string, force bool) error
	// Peers are the other replicas; nil if there are none.
	Peers replica.Peers
	// Ready are the checks of /readyz, run in this order.
	Ready []Check
	// Registry collects the server's metrics, and /metrics shows it. If it is nil, the
	// server makes its own.
	Registry *prometheus.Registry
	// Long admits the writes of large objects; nil means one for all processors.
	Long *admission.Long
	// LongReads admits the encoding of large answers; nil means one for all
	// processors.
	LongReads *admission.Long
	// Log receives a line for each request that changes something or fails, and at
	// level debug for all others; nil drops them.
	Log *slog.Logger
	// Version is the answer of /version.
	Version version.Info

	// Sockets are the addresses for proxies on this machine. Anybody may ask for them.
	Sockets rest.Sockets

	// ProxyReturn is how long after the start the server expects earlier proxies to
	// reconnect. 0 means that it does not wait. During that time, an object that no proxy
	// has is Unknown instead of programmed, unless the whole mesh is newer than the start.
	ProxyReturn time.Duration

	// HostNames are the names that requests may use, in addition to localhost and loopback
	// addresses on a loopback listener, and to the names that Envoys send. If there are
	// any, discovery refuses other names on other listeners too.
	HostNames []string

	// RequestTimeout bounds everything except a watch (30 s).
	RequestTimeout time.Duration
	// RevisionTimeout is how long a read waits for the resourceVersion that it asks
	// for (3 s, as in Kubernetes).
	RevisionTimeout time.Duration
	// WatchWriteTimeout is how long a watching client may leave data unread before it
	// is cut off (30 s).
	WatchWriteTimeout time.Duration
	// BookmarkInterval is the time between two bookmarks of a watch (1 min).
	BookmarkInterval time.Duration
	// HeartbeatInterval is the time between two comments of a watch by server-sent
	// events (15 s).
	HeartbeatInterval time.Duration
	// MaxWatches bounds the watches at one time (three quarters of MaxConnections, at most
	// 16384). One more replaces a watch of the client with the most watches, or gets 429.
	MaxWatches int
	// MaxConnections bounds the connections at one time (three quarters of the files that
	// the process may open, at most 32768). One more replaces the connection on which the
	// server has waited longest for a request, or for the rest of one. If the server is
	// answering on all of them, it closes the new one.
	MaxConnections int
	// Users bound what each user may do; the zero value means no limits.
	Users UserLimits
	// WriteMemory bounds, in bytes, the memory for decoding all small writes together, and
	// separately that for large ones (128 MiB, which is also the least). Writes for which
	// there is no memory wait in line.
	WriteMemory int64
	// ShutdownTimeout is how long running requests may take to finish at shutdown (10
	// s).
	ShutdownTimeout time.Duration
}

func (o *Options) setDefaults() {
	if o.Long == nil {
		o.Long = admission.NewLong(runtime.GOMAXPROCS(0))
	}
	if o.AccessKnown == nil {
		o.AccessKnown = func() bool { return true }
	}
	if o.Hosts == nil {
		o.Hosts = &gate.Hosts{}
	}
	if o.LongReads == nil {
		o.LongReads = admission.NewLongReads(runtime.GOMAXPROCS(0))
	}
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 30*time.Second)
	o.RevisionTimeout = cmp.Or(o.RevisionTimeout, 3*time.Second)
	o.WatchWriteTimeout = cmp.Or(o.WatchWriteTimeout, 30*time.Second)
	o.BookmarkInterval = cmp.Or(o.BookmarkInterval, time.Minute)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 15*time.Second)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, 10*time.Second)
	o.MaxTransaction = cmp.Or(o.MaxTransaction, store.MaxTxnOps)
	o.MaxConnections = cmp.Or(o.MaxConnections, admission.DefaultConnections(1))
	o.MaxWatches = cmp.Or(o.MaxWatches, min(16384, watch.ShareOf(o.MaxConnections)))
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}
