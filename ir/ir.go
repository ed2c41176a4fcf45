// Package ir describes what one proxy does, independently of the config kinds and
// of any Envoy version: listeners that take traffic, route tables that choose where
// it goes, clusters that reach endpoints. Front-ends (package compile) write it.
// Back-ends (envoy/v1, envoy/v3) encode it.
//
// Every part names the objects that it came from (Origins), so that a problem with
// generated configuration can be reported to an author. Everything is in a
// deterministic order. A Config is immutable after compile returns it. All proxies
// with the same view share it.
package ir

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/pilot-api/pilot-api/diag"
)

// Config is the complete configuration of the proxies of one view.
type Config struct {
	// Listeners are in no particular order and may have equal addresses.
	// ListenersAt returns the final list for one proxy.
	Listeners []*Listener
	// RouteTables are sorted by name. They include the tables that HTTP listeners
	// refer to, and those of ports that have routes and no listener.
	RouteTables []*RouteTable
	// Clusters are sorted by name. Names are unique.
	Clusters []*Cluster
	// Secrets are sorted by name. Names are unique. They are the ones that
	// listeners and clusters refer to.
	Secrets []*Secret
	// Origins are the objects that decide what is in the configuration at all, such as the
	// Sidecar that a proxy follows. No other part need name them.
	Origins []diag.Ref
	// OnDemand means that the proxy asks for hosts that its route tables lack. Tables that
	// it may ask about have the mark too.
	OnDemand bool `json:",omitempty"`
	// RouteDelay is how long a proxy waits between polls for route tables, Delay
	// the same for everything else. Envoy decides how to jitter it.
	RouteDelay, Delay time.Duration
}

// Direction is the direction of a listener's traffic, as seen from the workload.
type Direction string

const (
	Outbound Direction = "outbound" // from the workload into the mesh
	Inbound  Direction = "inbound"  // to the workload
	Gateway  Direction = "gateway"  // into the mesh, at its edge
)

// Listener accepts connections at one address. Exactly one of HTTP, TCP, Chains and
// UseOriginalDst is set, with one exception: TCP may be set beside UseOriginalDst, and
// takes connections that no other listener is for.
type Listener struct {
	// IP is the address to listen at. "" means the proxy's own address, so that
	// proxies that differ only in address share a Config.
	IP   string
	Port int
	// Bind opens the port. A listener that does not bind takes only connections
	// that the UseOriginalDst listener hands to it.
	Bind      bool
	Direction Direction

	// UseOriginalDst marks the listener at which captured traffic arrives. It hands
	// each connection to the listener of its original destination.
	UseOriginalDst bool
	HTTP           *HTTPListener
	TCP            *TCPListener
	TLS            *ServerTLS
	// Chains treat connections differently by the server name that the client asks
	// for. The first chain that fits takes the connection: its names fit, and the
	// destination fits too if all routes of its TCP have destinations. A connection
	// that fits no chain is closed.
	Chains []*FilterChain

	Origins []diag.Ref
}

// Transport is the protocol with which a connection begins.
type Transport string

const (
	AnyTransport Transport = ""
	OverTLS      Transport = "tls"
	PlainText    Transport = "plain"
)

// FilterChain handles the connections for some server names, or those of some transport.
// Exactly one of HTTP and TCP is set.
type FilterChain struct {
	// ServerNames are as in TCPRoute. If the chain has any, the routes of its TCP
	// have none.
	ServerNames []string
	// Transport is the protocol with which the connections begin. Chains with one precede
	// those for any.
	Transport Transport
	// ALPN are application protocols of which the client must offer one; it needs OverTLS.
	// Chains with some precede those without.
	ALPN []string
	HTTP *HTTPListener
	TCP  *TCPListener
	TLS  *ServerTLS

	Origins []diag.Ref
}

// HTTPListener routes requests by a table.
type HTTPListener struct {
	// Table is the name by which the table is fetched when Inline is nil.
	Table  string
	Inline *RouteTable
	// ForwardProxy means that requests arrive in absolute form (GET
	// http://host/…).
	ForwardProxy bool
	// AbsoluteURLs makes a ForwardProxy accept the absolute form and inject faults,
	// on proxies that need a setting for it. Without it those proxies answer 404.
	// Other proxies always accept the form.
	AbsoluteURLs bool
	// StrictHosts answers 403 to a Host header that, without its final dot, is not
	// a HostPattern with an optional AnyPort. A back-end that cannot express this
	// leaves it out.
	StrictHosts bool
	// Tokens are verified before Access decides; nil for none. A back-end that cannot verify
	// tokens closes the listener.
	Tokens *Tokens
	// Access decides which requests are accepted; nil accepts all. A back-end that cannot
	// express it closes the listener.
	Access *Access
	// UseRemoteAddress takes the peer's address as the client's (edge proxies).
	UseRemoteAddress bool
	Tracing          bool
	AccessLog        string // path, "" for none
}

// TCPListener forwards connections.
type TCPListener struct {
	// Mongo adds the filter that reads MongoDB's protocol for statistics. Otherwise
	// connections are plain TCP.
	Mongo bool
	// Access decides which connections are accepted; nil accepts all. A back-end that
	// cannot express it closes the listener.
	Access *Access
	// Routes are tried in order. The first one whose destination and server name
	// fit takes the connection. A connection that fits none is closed.
	Routes    []TCPRoute
	AccessLog string
}

// TCPRoute sends connections to clusters.
type TCPRoute struct {
	// Destinations are CIDR blocks. If empty, any destination fits; on a listener
	// without an IP only the proxy's own address does.
	Destinations []string
	// Port is the destination port of the connections; 0 is any. Routes with a port
	// precede those without.
	Port int
	// ServerNames are the names that clients ask for when they begin TLS: exact
	// names, and wildcards such as *.example.com for all names with that ending. If
	// empty, any client fits, including one that asks for no name or does not use
	// TLS.
	ServerNames []string
	// Assumed allows a proxy that sees no server names to assume that connections
	// ask for these. Otherwise it must close connections that might be for them.
	Assumed bool
	// NamesOnly means that a later route has the same destinations, and that only
	// the names differ. A proxy that sees no server names leaves the route out.
	NamesOnly bool
	// Clusters share the connections by their weights, whose sum is above 0. Only
	// names and weights are set.
	Clusters []WeightedCluster
	Stream   Stream
	// HashSource makes a cluster with a Hash pick its endpoint by the caller's
	// address.
	HashSource bool
	// Origins, if empty, are those of the listener.
	Origins []diag.Ref
}

// Whole returns a list that sends all connections, or requests, to one cluster.
func Whole(cluster string) []WeightedCluster {
	return []WeightedCluster{{Name: cluster, Weight: WholeWeight}}
}

// ParseDestination parses a CIDR block, with the bits beyond its length cleared.
func ParseDestination(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("destination must be a CIDR block like 10.0.0.0/8, found %q", text)
	}
	return p.Masked(), nil
}

// ServerTLS terminates TLS, with files on the proxy's machine or a Secret.
type ServerTLS struct {
	CertificateFile, KeyFile string
	// SecretName, in place of the files, names a Secret with a certificate.
	SecretName string `json:",omitempty"`
	// SDS, if it is set, is where the proxy takes SecretName from, in place of this server.
	SDS LocalSDS `json:",omitzero"`
	// Others are further certificates, for keys of other types.
	Others []KeyPair
	// Client says whether clients present a certificate, and what is required of
	// it. Nil requests no certificate.
	Client *ClientCertificate
	// MinVersion and MaxVersion are the range of TLS versions. "" is the proxy's
	// default, which is 1.2 and 1.3.
	MinVersion, MaxVersion TLSVersion
	// Ciphers are those of TLS 1.2 and before, in OpenSSL's names. If empty, the
	// proxy's default is used.
	Ciphers []string
	ALPN    []string
}

// KeyPair is a certificate and its key, in files or a Secret.
type KeyPair struct {
	CertificateFile, KeyFile string
	SecretName               string `json:",omitempty"`
}

// TLSVersion is a version of TLS, such as "1.2".
type TLSVersion string

// The versions of TLS.
const (
	TLS10 TLSVersion = "1.0"
	TLS11 TLSVersion = "1.1"
	TLS12 TLSVersion = "1.2"
	TLS13 TLSVersion = "1.3"
)

// ClientCertificate says what a server requires of its clients' certificates.
type ClientCertificate struct {
	// CAFile holds the authorities that verify them. CASecretName names a Secret
	// instead.
	CAFile       string
	CASecretName string `json:",omitempty"`
	// Optional lets clients present no certificate. One that is presented must be
	// valid.
	Optional bool
	// Unverified accepts certificates without an authority. The other requirements
	// apply.
	Unverified bool
	// CRLFile holds revoked certificates of the authorities; "" for none.
	CRLFile string
	// SubjectAltNames are the names of which the certificate must have at least
	// one. If empty, any name is accepted.
	SubjectAltNames []string
	// URIPrefix is the beginning that one of its URIs must have; "" for any. A back-end that
	// cannot express it leaves the listener out.
	URIPrefix string `json:",omitempty"`
	// KeyHashes are SHA-256 hashes of public keys in base64, CertificateHashes
	// those of certificates in hex. If either is set, one of them must match the
	// client's certificate.
	KeyHashes, CertificateHashes []string
}
