package mesh

import (
	"cmp"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
)

// Settings hold for the whole mesh (--mesh-config). Field names in the file
// are those of Pilot's mesh configuration. What the comments of the fields
// say is in docs/reference/mesh-config.md too.
type Settings struct {
	// ProxyListenPort is the port where a sidecar takes redirected traffic;
	// with 0 only the HTTP proxy port is served.
	ProxyListenPort int
	// ProxyHTTPPort is the port where a sidecar is an HTTP proxy to
	// applications beside it; 0: there is none.
	ProxyHTTPPort int
	// ConnectTimeout is how long a proxy waits for a connection to an
	// instance, unless a policy says otherwise. Without it, that is 10s, as in
	// Istio, and 1s for an Envoy of the v1 API, as in Pilot.
	ConnectTimeout time.Duration
	// RDSRefreshDelay is the time between two polls for routes. For clusters
	// and listeners it is in the bootstrap of every Envoy.
	RDSRefreshDelay time.Duration
	// DiscoveryRefreshDelay is the time between two polls for the endpoints of a
	// cluster by an Envoy of the v3 API, which asks for each cluster by itself.
	DiscoveryRefreshDelay time.Duration
	// EnableTracing has proxies trace HTTP requests; where traces go is in the
	// bootstrap of an Envoy.
	EnableTracing bool
	// AccessLogFile is the file on the proxy's machine with a line for each
	// request or connection; empty: there is none.
	AccessLogFile string
	// ManagementPorts are open at every workload beside those of its
	// services, for probes and the like; names and numbers are unique.
	ManagementPorts []*Port
	// IngressCertificates are the certificates by the secret that IngressRules
	// and Gateways name. An IngressRule whose secret is not here, or that has
	// no file here, has the files of Istio 0.x: those in
	// /etc/istio/ingress-certs. A Gateway's MUTUAL server verifies clients by
	// caFile, unless it names caCertificates; those that crlFile revokes it
	// refuses.
	IngressCertificates map[string]Certificate
	// ClientCertificates are the certificates by the secret that
	// DestinationRules name as credentialName, in files that each proxy has.
	// Endpoints are verified by caFile and crlFile; certificateFile and keyFile
	// are what MUTUAL shows them.
	ClientCertificates map[string]Certificate
	// SecretFiles are secrets in files on this server's machine, by name, or as
	// namespace/name. Each is what a Secret of that name would be to Gateways and
	// DestinationRules, and takes the place of one. They are read again whenever they
	// change; what does not fit together, as while one of two files is new, leaves the
	// last good ones in force.
	SecretFiles map[string]SecretFile
	// WorkloadCertificates are the files by which a workload shows who it is, and
	// finds out who others are, on every proxy's machine. Without them a
	// DestinationRule of mode ISTIO_MUTUAL answers requests with 503, and a
	// server of a Gateway is left out.
	WorkloadCertificates Certificate
	// SystemRootsFile is the file with the authorities that a proxy's machine
	// trusts. A DestinationRule without caCertificates verifies endpoints by it.
	// The default is where Debian, Ubuntu, Alpine and Envoy's own images have it;
	// on Red Hat and Fedora it is /etc/pki/tls/certs/ca-bundle.crt, on SUSE
	// /etc/ssl/ca-bundle.pem. When empty, such rules answer requests with 503,
	// as they do on a machine without the file.
	SystemRootsFile string
	// TrustDomain is that of the SPIFFE IDs in the certificates of proxies
	// (--grpc-client-ca): an ID of another one lets no proxy in. When empty, it is what
	// --domain says.
	TrustDomain string
	// RootNamespace is the namespace whose VirtualServices,
	// DestinationRules and Sidecar hold for callers of every namespace, where
	// nearer ones do not.
	RootNamespace string
	// OutboundTrafficPolicy is what becomes of captured connections and requests
	// to what the registry does not know: ALLOW_ANY has them go on to where they
	// were going, REGISTRY_ONLY closes the connections and answers the requests
	// with 502. A service that a caller may not see is one that its proxy does
	// not know. Connections to ports of the workload itself that nobody declared
	// are treated alike. At the HTTP proxy port such requests get 404.
	OutboundTrafficPolicy OutboundMode
	// DefaultVisibility is who sees a ServiceEntry, a VirtualService or a
	// DestinationRule without exportTo: * is every namespace, . its own.
	DefaultVisibility Visibility
	// Networks are the gateways by which instances of a network are reached from
	// another one: a ServiceEntry, a WorkloadEntry or its label
	// topology.istio.io/network says where an instance is, and a proxy is where
	// its own instances are, or where its node's label says. One of which that is
	// not known reaches all instances directly, and so does everybody those of a
	// network that is not named here. Gateways tell services apart by the host
	// that a client asks for, so that connections of TCP, and requests for a
	// subset, do not leave a network.
	Networks map[string][]NetworkGateway
	// LocalityLbSetting is how callers prefer instances by where both are, as in
	// Istio, for services whose DestinationRule does not say: distribute, failover
	// and failoverPriority. Those that are closer come first where a
	// DestinationRule has outlier detection; enabled: false switches that off.
	LocalityLbSetting *networking.LocalityLoadBalancerSetting
	// HealthCheck is how proxies find out which instances of a service are alive
	// whose ServiceEntry does not say so in the annotation
	// pilot-api/health-check, which has the same keys.
	HealthCheck *schema.HealthCheck
	// Budget is how many parts objects may multiply to, as hosts, ports and endpoints
	// of a ServiceEntry do: object is for one of them, mesh for all together. What does
	// not fit is withheld, and has the problem OverBudget. Without it, both follow from
	// the memory limit of pilot-api, or else from nine tenths of the memory of the
	// machine: a part of mesh for each 32 KiB, a quarter of that for object, and never
	// more than these defaults.
	Budget Budget
	// UnixSocketFolders are the folders on proxies' machines whose Unix sockets objects
	// may name as endpoints, as in address: unix:///run/app/http.sock of a ServiceEntry
	// or WorkloadEntry, or as defaultEndpoint of a Sidecar; what lies deeper counts
	// too. Without it, no socket is an endpoint. A proxy opens sockets with the rights
	// of its own user, so name only folders that hold nothing else than what every
	// author of objects may reach. A link in such a folder is followed wherever it
	// leads. Sockets in the data folder of the server and abstract sockets (@) are
	// never endpoints.
	UnixSocketFolders []string
	// V1Compatibility says which accidents of Pilot are kept, none by default.
	V1Compatibility V1Compatibility
	// Domain of the mesh, "cluster.local": what short service names end in,
	// after the namespace and "svc". It comes from a flag, not from the file.
	Domain string
	// PrivateFolders are those of the server on its own machine, which no endpoint may
	// lie in. They come from a flag, not from the file.
	PrivateFolders []string
}

// SPIFFETrustDomain is that of this mesh's proxies.
func (s *Settings) SPIFFETrustDomain() string { return cmp.Or(s.TrustDomain, s.Domain) }

// OutboundMode is a way to treat what is not known.
type OutboundMode string

const (
	AllowAny     OutboundMode = "ALLOW_ANY"
	RegistryOnly OutboundMode = "REGISTRY_ONLY"
)

// Visibility is an exportTo for those who have none.
type Visibility string

const (
	VisibleToAll  Visibility = "*"
	VisibleInside Visibility = "."
)

// ExportTo is who sees an object that says this, as Exported reads it.
func (s *Settings) ExportTo(said []string) []string {
	if len(said) == 0 && s.DefaultVisibility == VisibleInside {
		return []string{string(VisibleInside)}
	}
	return said
}

// ExportToOf is who sees a DestinationRule: callers of its own namespace, where it
// selects some of them.
func (s *Settings) ExportToOf(rule *networking.DestinationRule) []string {
	if rule.GetWorkloadSelector() != nil {
		return []string{string(VisibleInside)}
	}
	return s.ExportTo(rule.GetExportTo())
}

// Certificate is a pair of files on the proxy's machine. CAFile is one with the
// authorities of the other side, and CRLFile one with what they have revoked; ""
// for none.
type Certificate struct{ CertificateFile, KeyFile, CAFile, CRLFile string }

// DefaultIngressCertificate is where the ingress of Istio 0.x had its pair.
var DefaultIngressCertificate = Certificate{
	CertificateFile: "/etc/istio/ingress-certs/tls.crt",
	KeyFile:         "/etc/istio/ingress-certs/tls.key",
}

// IngressCertificate is the pair for a secret.
func (s *Settings) IngressCertificate(secret string) Certificate {
	if c, ok := s.IngressCertificates[secret]; ok {
		return c
	}
	return DefaultIngressCertificate
}

// DefaultSettings is what a mesh without a file runs with: Pilot's defaults,
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
		DefaultVisibility:     VisibleToAll,
		Domain:                "cluster.local",
	}
}
