// Package ir says what one proxy must do, in words that belong neither to the
// config kinds nor to any Envoy version: listeners that take traffic, route
// tables that decide, clusters that reach endpoints. Front-ends (package
// compile) write it, back-ends (envoy/v1, envoy/v3) spell it.
//
// Every part names the objects it came from (Origins), so that a complaint
// about generated configuration finds its way back to an author. Everything is
// in a deterministic order. A Config is immutable once compile returned it:
// it is shared by all proxies with the same view.
package ir

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/pilot-api/pilot-api/diag"
)

// Config is all that proxies of one view do.
type Config struct {
	// Listeners in no particular order and possibly with equal addresses;
	// ListenersAt gives the final list for one proxy.
	Listeners []*Listener
	// RouteTables sorted by name; the ones that HTTP listeners refer to, and
	// those of ports that have routes and no listener.
	RouteTables []*RouteTable
	// Clusters sorted by name, names unique.
	Clusters []*Cluster
	// Secrets sorted by name, names unique: those that listeners and clusters refer
	// to.
	Secrets []*Secret
	// RouteDelay is how long a proxy waits between polls for route tables,
	// Delay the same for everything else. How it is jittered is Envoy's.
	RouteDelay, Delay time.Duration
}

// Direction of traffic through a listener, seen from the workload.
type Direction string

const (
	Outbound Direction = "outbound" // from the workload into the mesh
	Inbound  Direction = "inbound"  // to the workload
	Gateway  Direction = "gateway"  // into the mesh, at its edge
)

// Listener takes connections at one address. Exactly one of HTTP, TCP, Chains
// and UseOriginalDst is set, but for a TCP beside UseOriginalDst: that takes what
// no listener is for.
type Listener struct {
	// IP to listen at; "" means the proxy's own address, so that proxies
	// that differ only in address share a Config.
	IP   string
	Port int
	// Bind opens the port. A listener that does not bind only takes
	// connections handed to it by the UseOriginalDst listener.
	Bind      bool
	Direction Direction

	// UseOriginalDst is the listener that captured traffic arrives at: it hands
	// each connection to the listener of its original destination.
	UseOriginalDst bool
	HTTP           *HTTPListener
	TCP            *TCPListener
	TLS            *ServerTLS
	// Chains do different things with connections, by the name that the client
	// asks for: the first of which the name fits and, where all routes of its TCP have
	// destinations, one of those. A connection that fits none is closed.
	Chains []*FilterChain

	Origins []diag.Ref
}

// FilterChain is what becomes of the connections for some server names. Exactly
// one of HTTP and TCP is set.
type FilterChain struct {
	// ServerNames as those of a TCPRoute. Where the chain has some, the routes of
	// its TCP have none.
	ServerNames []string
	HTTP        *HTTPListener
	TCP         *TCPListener
	TLS         *ServerTLS

	Origins []diag.Ref
}

// HTTPListener routes requests by a table.
type HTTPListener struct {
	// Table is fetched by its name when Inline is nil.
	Table  string
	Inline *RouteTable
	// ForwardProxy: requests come in absolute form (GET http://host/…).
	ForwardProxy bool
	// AbsoluteURLs has a ForwardProxy understand that form and inject faults there
	// also where it must be told so, and else answers 404. One that need not be
	// told always does.
	AbsoluteURLs bool
	// StrictHosts answers 403 to a Host header that is no HostPattern, perhaps with
	// AnyPort, once its final dot is gone. A back-end that cannot say so leaves it out.
	StrictHosts bool
	// UseRemoteAddress: the peer's address is the client's (edge proxies).
	UseRemoteAddress bool
	Tracing          bool
	AccessLog        string // path, "" for none
}

// TCPListener forwards connections.
type TCPListener struct {
	// Protocol decides about filters before the proxying: "Mongo" is
	// sniffed for statistics, all else is plain.
	Mongo bool
	// Routes: the first of which destination and server name fit. A connection
	// that fits none is closed.
	Routes    []TCPRoute
	AccessLog string
}

// TCPRoute sends connections to clusters.
type TCPRoute struct {
	// Destinations are CIDR blocks; none means any destination, on a
	// listener with an open IP the proxy's own address.
	Destinations []string
	// Port that connections were going to; 0 is any. Routes with a port stand
	// before those without.
	Port int
	// ServerNames are those that clients ask for when they begin TLS: names, and
	// wildcards such as *.example.com for all that end so. None means any client,
	// also one that asks for no name or speaks no TLS.
	ServerNames []string
	// Assumed: a proxy that sees no server names may take connections to ask for
	// these. Else it must close what might be for them.
	Assumed bool
	// NamesOnly: the destinations are those of a later route, and only the names are
	// not. A proxy that sees no server names leaves the route out.
	NamesOnly bool
	// Clusters share the connections by their weights, whose sum is above 0;
	// nothing else is said of them.
	Clusters []WeightedCluster
	Stream   Stream
	// HashSource picks an endpoint of a cluster with a Hash by the caller's address.
	HashSource bool
	// Origins are those of the listener where there are none.
	Origins []diag.Ref
}

// Whole is all connections, or requests, for one cluster.
func Whole(cluster string) []WeightedCluster {
	return []WeightedCluster{{Name: cluster, Weight: WholeWeight}}
}

// ParseDestination reads a CIDR block, with the bits beyond it cleared.
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
	// SecretName, in place of the files, is the name of one with a certificate.
	SecretName string `json:",omitempty"`
	// Others are further certificates, for keys of other types.
	Others []KeyPair
	// Client says whether clients show a certificate, and what is asked of it.
	// Nil is no certificate.
	Client *ClientCertificate
	// MinVersion and MaxVersion of TLS that are spoken; "" is the proxy's own
	// choice, which is 1.2 and 1.3.
	MinVersion, MaxVersion TLSVersion
	// Ciphers of TLS 1.2 and before, in OpenSSL's names; none is the proxy's own
	// choice.
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

// ClientCertificate is what a server asks of the certificates of its clients.
type ClientCertificate struct {
	// CAFile holds the authorities that vouch for them; or CASecretName does, under its
	// name.
	CAFile       string
	CASecretName string `json:",omitempty"`
	// Optional: a client may also show none. One that it shows must be right.
	Optional bool
	// Unverified: no authority need vouch for it. What else is asked holds.
	Unverified bool
	// CRLFile holds revoked certificates of the authorities; "" for none.
	CRLFile string
	// SubjectAltNames are the names of which it must have one; none means any.
	SubjectAltNames []string
	// KeyHashes are SHA-256 of public keys in base64, CertificateHashes those of
	// certificates in hex. With any of either, one must be the client's.
	KeyHashes, CertificateHashes []string
}
