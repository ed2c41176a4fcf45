package mesh

import (
	"cmp"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
)

// Settings apply to the whole mesh (--mesh-config). Field names in the file are
// those of Pilot's mesh configuration. The comments of the fields are also in
// docs/reference/mesh-config.md.
type Settings struct {
	// ProxyListenPort is the port at which a sidecar accepts redirected traffic;
	// with 0 only the HTTP proxy port is served.
	ProxyListenPort int
	// ProxyHTTPPort is the port at which a sidecar is an HTTP proxy for
	// applications beside it; 0 means none.
	ProxyHTTPPort int
	// ConnectTimeout is how long a proxy waits for a connection to an instance,
	// unless a policy says otherwise. The default is 10s, as in Istio, and 1s for
	// an Envoy of the v1 API, as in Pilot.
	ConnectTimeout time.Duration
	// RDSRefreshDelay is the time between two polls for routes. For clusters and
	// listeners it is in the bootstrap of every Envoy.
	RDSRefreshDelay time.Duration
	// DiscoveryRefreshDelay is the time between two polls for the endpoints of a
	// cluster by an Envoy of the v3 API, which polls for each cluster separately.
	DiscoveryRefreshDelay time.Duration
	// EnableTracing makes proxies trace HTTP requests; the bootstrap of an Envoy
	// says where it sends traces.
	EnableTracing bool
	// AccessLogFile is the file on the proxy's machine with a line for each request
	// or connection; empty means none.
	AccessLogFile string
	// ManagementPorts are open at every workload in addition to the ports of its
	// services, for probes and the like; names and numbers are unique.
	ManagementPorts []*Port
	// IngressCertificates are the certificates by the secret that IngressRules and
	// Gateways name. An IngressRule whose secret is not listed here, or has no file
	// here, uses the files of Istio 0.x in /etc/istio/ingress-certs. A Gateway's
	// MUTUAL server verifies clients by caFile, unless it names caCertificates; it
	// refuses certificates that crlFile revokes.
	IngressCertificates map[string]Certificate
	// ClientCertificates are the certificates by the secret that DestinationRules
	// name as credentialName, in files on each proxy's machine. Proxies verify
	// endpoints by caFile and crlFile; with MUTUAL they present certificateFile and
	// keyFile.
	ClientCertificates map[string]Certificate
	// SecretFiles are secrets in files on this server's machine, by name, or as
	// namespace/name. Gateways and DestinationRules use each like a Secret of that
	// name, and it replaces such a Secret. The server reads them again whenever
	// they change; if they do not fit together, as while only one of two files is
	// new, the last good ones stay in force.
	SecretFiles map[string]SecretFile
	// WorkloadCertificates are the means, on every proxy's machine, by which a
	// workload proves its identity and verifies that of others: files that a proxy
	// reads at its start; or sdsFile, a file with Envoy's secret default, which a proxy
	// reads again when it is replaced, while this server sends it the roots of its
	// certificate authority; or sdsSocket, the Unix socket of an agent that serves the
	// secrets default and ROOTCA. Without them a DestinationRule of mode ISTIO_MUTUAL
	// answers requests with 503, a server of a Gateway with that mode is left out, and
	// a port in mode STRICT of a PeerAuthentication is closed.
	WorkloadCertificates WorkloadCertificates
	// JWKSFetching says how the server fetches the public keys of issuers that
	// RequestAuthentications name. With addresses, keys come only from endpoints in these
	// blocks. Without, they come from all addresses except those of the server's own machine and
	// of its link (loopback, link-local, multicast), so that no author of objects can use
	// the server to ask services that trust its machine. caFile has the authorities of
	// the endpoints, in place of those of the system.
	JWKSFetching KeyFetching
	// SystemRootsFile is the file with the authorities that a proxy's machine
	// trusts. A DestinationRule without caCertificates verifies endpoints by it.
	// The default is its path on Debian, Ubuntu, Alpine and in Envoy's own images;
	// on Red Hat and Fedora it is /etc/pki/tls/certs/ca-bundle.crt, on SUSE
	// /etc/ssl/ca-bundle.pem. If empty, such rules answer requests with 503, as
	// they do on a machine without the file.
	SystemRootsFile string
	// TrustDomain is the trust domain of the SPIFFE IDs in the certificates of
	// proxies (--grpc-client-ca): a proxy with an ID of another trust domain is
	// refused. If empty, it is the value of --domain.
	TrustDomain string
	// RootNamespace is the namespace whose objects apply to all namespaces: its
	// VirtualServices, DestinationRules and Sidecar to callers, and its
	// PeerAuthentication to workloads, unless nearer ones do; its
	// AuthorizationPolicies to workloads, beside those of their namespace.
	RootNamespace string
	// OutboundTrafficPolicy is the treatment of captured connections and requests
	// to destinations that are not in the registry: ALLOW_ANY passes them on to
	// their destination, REGISTRY_ONLY closes the connections and answers the
	// requests with 502. A service that is not visible to a caller counts as not in
	// the registry. Connections to undeclared ports of the workload itself are
	// treated in the same way. At the HTTP proxy port such requests get 404.
	OutboundTrafficPolicy OutboundMode
	// OnDemand is what a sidecar learns only when its workload calls it: hosts means the
	// routes and clusters of HTTP hosts, off means nothing. It is for Envoy 1.40 or newer
	// on the delta stream; docs/on-demand.md says what the first request costs.
	// The annotation of a Sidecar may say otherwise for the proxies that follow it.
	OnDemand OnDemandMode
	// DefaultVisibility is the visibility of a ServiceEntry, a VirtualService or a
	// DestinationRule without exportTo: * is every namespace, . its own.
	DefaultVisibility Visibility
	// Networks are the gateways through which other networks reach the instances of
	// a network. A ServiceEntry, a WorkloadEntry or its label
	// topology.istio.io/network says where an instance is; a proxy is where its own
	// instances are, or where its node's label says. A proxy whose network is not
	// known reaches all instances directly, and every proxy reaches the instances
	// of a network that is not named here directly. Gateways distinguish services
	// by the host that a client asks for, so TCP connections, and requests for a
	// subset, do not leave a network.
	Networks map[string][]NetworkGateway
	// LocalityLbSetting is how callers prefer instances by the locality of both, as
	// in Istio, for services whose DestinationRule does not say: distribute,
	// failover and failoverPriority. Closer instances come first if a
	// DestinationRule has outlier detection; enabled: false turns that off.
	LocalityLbSetting *networking.LocalityLoadBalancerSetting
	// HealthCheck is how proxies check which instances of a service are alive,
	// unless its ServiceEntry says so in the annotation pilot-api/health-check,
	// which has the same keys.
	HealthCheck *schema.HealthCheck
	// Budget is how many parts objects may multiply to, as hosts, ports and
	// endpoints of a ServiceEntry do: object is the limit for one of them, mesh for
	// all together. An object that does not fit is withheld and has the problem
	// OverBudget. By default, both follow from the memory limit of pilot-api, or
	// else from nine tenths of the memory of the machine: a part of mesh for each
	// 32 KiB, a quarter of that for object, and never more than these defaults.
	Budget Budget
	// UnixSocketFolders are the folders on proxies' machines whose Unix sockets
	// objects may name as endpoints, as in address: unix:///run/app/http.sock of a
	// ServiceEntry or WorkloadEntry, or as defaultEndpoint of a Sidecar; subfolders
	// are included. Without it, no socket is an endpoint. A proxy opens sockets
	// with the rights of its own user, so name only folders with nothing but
	// sockets that every author of objects may reach. Links in such a folder are
	// followed wherever they lead. Sockets in the data folder of the server and
	// abstract sockets (@) are never endpoints.
	UnixSocketFolders []string
	// V1Compatibility says which quirks of Pilot are kept, none by default.
	V1Compatibility V1Compatibility
	// Domain is the domain of the mesh, such as "cluster.local". Short service
	// names are completed with the namespace, "svc" and this domain. It comes from
	// a flag, not from the file.
	Domain string
	// PrivateFolders are the server's own folders on its machine, in which no
	// endpoint may be. They come from a flag, not from the file.
	PrivateFolders []string
}

// SPIFFETrustDomain returns the trust domain of this mesh's proxies.
func (s *Settings) SPIFFETrustDomain() string { return cmp.Or(s.TrustDomain, s.Domain) }

// OutboundMode is a treatment of unknown destinations.
type OutboundMode string

const (
	AllowAny     OutboundMode = "ALLOW_ANY"
	RegistryOnly OutboundMode = "REGISTRY_ONLY"
)

// OnDemandMode says what a sidecar learns only when its workload calls it.
type OnDemandMode string

const (
	OnDemandOff   OnDemandMode = schema.OnDemandOff
	OnDemandHosts OnDemandMode = schema.OnDemandHosts
)

// WithoutOnDemand returns why no host can be on demand with these settings, or "".
func (s *Settings) WithoutOnDemand() string {
	switch quirks := s.V1Compatibility; {
	case s.ProxyListenPort == 0:
		return "hosts requires captured traffic: set proxyListenPort"
	case s.ProxyHTTPPort != 0:
		return "hosts requires that proxyHttpPort is 0: the HTTP proxy port needs the hosts of all ports"
	case quirks.HostsAsWritten || quirks.UnknownDestinationsClosed:
		return "hosts excludes hostsAsWritten and unknownDestinationsClosed of v1Compatibility"
	}
	return ""
}

// Visibility is the exportTo of objects that have none.
type Visibility string

const (
	VisibleToAll  Visibility = "*"
	VisibleInside Visibility = "."
)

// ExportTo returns the exportTo in force for an object that states the given one,
// in the form that Exported takes.
func (s *Settings) ExportTo(said []string) []string {
	if len(said) == 0 && s.DefaultVisibility == VisibleInside {
		return []string{string(VisibleInside)}
	}
	return said
}

// ExportToOf returns the exportTo in force for a DestinationRule. A rule that
// selects callers applies only in its own namespace.
func (s *Settings) ExportToOf(rule *networking.DestinationRule) []string {
	if rule.GetWorkloadSelector() != nil {
		return []string{string(VisibleInside)}
	}
	return s.ExportTo(rule.GetExportTo())
}

// Certificate is a key pair in files on the proxy's machine. CAFile has the
// authorities that verify the other side, and CRLFile the certificates that they
// have revoked; both may be "".
type Certificate struct{ CertificateFile, KeyFile, CAFile, CRLFile string }

// DefaultIngressCertificate is the key pair of the ingress of Istio 0.x.
var DefaultIngressCertificate = Certificate{
	CertificateFile: "/etc/istio/ingress-certs/tls.crt",
	KeyFile:         "/etc/istio/ingress-certs/tls.key",
}

// IngressCertificate returns the key pair of a secret.
func (s *Settings) IngressCertificate(secret string) Certificate {
	if c, ok := s.IngressCertificates[secret]; ok {
		return c
	}
	return DefaultIngressCertificate
}

// DefaultSettings returns the settings of a mesh without a file: Pilot's defaults,
// a discovery delay of five seconds, and the connect timeout of each API.
func DefaultSettings() *Settings {
	return &Settings{
		ProxyListenPort:       15001,
		RDSRefreshDelay:       time.Second,
		DiscoveryRefreshDelay: 5 * time.Second,
		EnableTracing:         true,
		AccessLogFile:         "/dev/stdout",
		RootNamespace:         "istio-system",
		SystemRootsFile:       "/etc/ssl/certs/ca-certificates.crt",
		OutboundTrafficPolicy: AllowAny,
		OnDemand:              OnDemandOff,
		DefaultVisibility:     VisibleToAll,
		Domain:                "cluster.local",
	}
}
