// Package mesh is the model between the config kinds and the compiler: which
// services exist, where their instances are, which proxies there are and what
// the operator set for the whole mesh. A Snapshot holds all of it at one store
// revision; it is immutable and a pure function of the objects and settings
// that it was built from.
//
// The service registry is made of config objects: ServiceEntry declares a
// service, its inline endpoints and WorkloadEntry its instances.
package mesh

import (
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// Protocol of a service port, in capitals except Mongo and Redis, as they
// appear in the names of external clusters.
type Protocol string

const (
	HTTP  Protocol = "HTTP"
	HTTP2 Protocol = "HTTP2"
	GRPC  Protocol = "GRPC"
	HTTPS Protocol = "HTTPS"
	TCP   Protocol = "TCP"
	TLS   Protocol = "TLS"
	Mongo Protocol = "Mongo"
	Redis Protocol = "Redis"
	UDP   Protocol = "UDP"
)

// ParseProtocol reads a protocol in any case; false when there is no such one.
// None said is TCP. A protocol that proxies treat like another one is read as
// that one.
func ParseProtocol(s string) (Protocol, bool) {
	switch strings.ToUpper(s) {
	case "", "MYSQL":
		return TCP, true
	case "GRPC-WEB":
		return HTTP, true
	}
	for _, p := range []Protocol{HTTP, HTTP2, GRPC, HTTPS, TCP, TLS, Mongo, Redis, UDP} {
		if strings.EqualFold(string(p), s) {
			return p, true
		}
	}
	return "", false
}

// IsHTTP reports whether requests on such a port can be routed by host, path and
// header: HTTP, HTTP2 and GRPC in clear text.
func (p Protocol) IsHTTP() bool { return p == HTTP || p == HTTP2 || p == GRPC }

// Labels tell the versions of a service apart.
type Labels map[string]string

// SubsetOf reports whether every pair of l is in other. Empty labels are a
// subset of any.
func (l Labels) SubsetOf(other Labels) bool {
	for k, v := range l {
		if w, ok := other[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// Equal reports whether both hold the same pairs; nil equals empty.
func (l Labels) Equal(other Labels) bool { return len(l) == len(other) && l.SubsetOf(other) }

// Port is a port of a service.
type Port struct {
	Name     string
	Number   int
	Protocol Protocol
	// Unstated: the ServiceEntry gives no protocol, so it is TCP.
	Unstated bool
	// TargetPort is where instances listen that do not say themselves.
	TargetPort int
}

// Resolution tells how a proxy finds the instances of a service.
type Resolution string

const (
	// Static: the registry lists the instances.
	Static Resolution = "STATIC"
	// DNS: instances (or, without any, the host itself) are names to look up.
	DNS Resolution = "DNS"
	// Passthrough: the connection goes where the caller meant it to go
	// (ServiceEntry's NONE).
	Passthrough Resolution = "NONE"
)

// Service is one host of the registry, as one object declares it.
type Service struct {
	Hostname string
	// apart tells it, in service keys, from other services of its host.
	apart string
	// before are the services of its host that come first, for the callers
	// who know them.
	before []*Service
	index  instanceIndex
	// Namespace of the object that declares it.
	Namespace string
	// Created is when the object was.
	Created time.Time
	// ExportTo is who knows it, as Exported reads it.
	ExportTo []string
	// Addresses are the service's own virtual ones, each an IPv4 or IPv6 address
	// or a CIDR block, in canonical form and each once.
	Addresses []string
	Ports     []*Port // in the order declared
	// External services are outside the mesh (ServiceEntry's MESH_EXTERNAL).
	External bool
	// Egress services are hosts outside that are opened as they are: what is
	// sent to one goes to it, whatever a rule says, and its TLS starts at the
	// proxy (EgressRule).
	Egress     bool
	Resolution Resolution
	// OneAddress: under DNS resolution, of all addresses of a name only the
	// first is used, until it is another one (ServiceEntry's DNS_ROUND_ROBIN).
	OneAddress bool
	// Sockets: instances are Unix sockets on the machine of each caller, so that
	// nobody answers for them.
	Sockets bool
	// Networks: instances are in networks that others come to by gateways, so that
	// it depends on the caller where they are.
	Networks bool
	// SubjectAltNames are names of which an instance's certificate must have one;
	// none means any.
	SubjectAltNames []string
	// HealthCheck finds out which instances are alive; nil when nobody asks.
	HealthCheck *schema.HealthCheck
	// Withheld: the object that declares it exceeds the budget. It has no
	// instances, and its clusters are closed.
	Withheld bool
	// Undeclared: no service has the host at the port. The service is not in the registry;
	// it stands for the host where a rule is for it.
	Undeclared bool
	// Instances in registry order: inline endpoints as written, then
	// WorkloadEntries by namespace and name. One entry per endpoint and
	// service port.
	Instances []*Instance
	Origin    schema.Key
}

// KeyHost is the host in keys of the service: the name itself, with the object
// that declares it behind unless it is for all callers. It depends on nothing
// else, so that a key never comes to mean what is for other callers.
func (s *Service) KeyHost() string { return s.Hostname + s.apart }

// NamesExternal reports whether the service is a name inside the mesh for a host
// outside, found by looking that name up. (Pilot knew it as a service with an
// external name.)
func (s *Service) NamesExternal() bool {
	return !s.External && s.IsItsOwnEndpoint()
}

// IsItsOwnEndpoint reports whether the host itself is looked up, as there are no
// instances.
func (s *Service) IsItsOwnEndpoint() bool {
	return s.Resolution == DNS && len(s.Instances) == 0 && !s.Withheld
}

// Port finds a port by number; nil when there is none.
func (s *Service) Port(number int) *Port {
	for _, p := range s.Ports {
		if p.Number == number {
			return p
		}
	}
	return nil
}

// PortByName finds a port by name; nil when there is none.
func (s *Service) PortByName(name string) *Port {
	for _, p := range s.Ports {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Instance is one endpoint of one port of a service.
type Instance struct {
	Service *Service
	Port    *Port // the service's port
	// Address is an IP address, under DNS resolution also a host name, else also
	// a Unix socket, as unix:// and its path or @ and its name. "" is only in a
	// network that has gateways.
	Address string
	// EndpointPort is the port the instance listens on; 0 for a socket.
	EndpointPort int
	Labels       Labels
	Zone         string // availability zone, "" when unknown
	Network      string // "" when unknown
	Weight       int    // 0 when unset
	Origin       schema.Key
}
