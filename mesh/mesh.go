// Package mesh is the model between the config kinds and the compiler: which
// services exist, where their instances are, which proxies there are, and what the
// operator configured for the whole mesh. A Snapshot holds all of it at one store
// revision. It is immutable and a pure function of the objects and settings that it
// was built from.
//
// The service registry is built from config objects: a ServiceEntry declares a
// service, and its inline endpoints and WorkloadEntries are the instances.
package mesh

import (
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// Protocol is the protocol of a service port, in upper case except Mongo and Redis,
// as in the names of external clusters.
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

// ParseProtocol parses a protocol, ignoring case. It returns false for an unknown
// one. The empty string is TCP. A protocol that proxies treat like another one is
// read as that one.
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

// Labels distinguish the versions of a service.
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
	// Unstated is set if the ServiceEntry gives no protocol. The protocol is then
	// TCP.
	Unstated bool
	// ServerFirst is set for a protocol in which a client waits until the server has sent
	// something: MYSQL.
	ServerFirst bool
	// TargetPort is the port of instances that do not set their own.
	TargetPort int
}

// Resolution says how a proxy finds the instances of a service.
type Resolution string

const (
	// Static means that the registry lists the instances.
	Static Resolution = "STATIC"
	// DNS means that instances (or, if there are none, the host itself) are names
	// to resolve.
	DNS Resolution = "DNS"
	// Passthrough means that a connection goes to the address that the caller chose
	// (ServiceEntry's NONE).
	Passthrough Resolution = "NONE"
)

// Service is one host of the registry, as declared by one object.
type Service struct {
	Hostname string
	// apart distinguishes it, in service keys, from other services with its host.
	apart string
	// before are the services with its host that have precedence for callers that
	// see them.
	before []*Service
	index  instanceIndex
	// Namespace is that of the object that declares it.
	Namespace string
	// Created is the creation time of that object.
	Created time.Time
	// ExportTo says who sees it, as in Exported.
	ExportTo []string
	// Addresses are the service's virtual addresses: IPv4 or IPv6 addresses or CIDR
	// blocks, in canonical form, each once.
	Addresses []string
	Ports     []*Port // in the order declared
	// External services are outside the mesh (ServiceEntry's MESH_EXTERNAL).
	External bool
	// Egress services are external hosts that an EgressRule opens. All requests to
	// one go to that host, whatever a rule says, and the proxy starts TLS.
	Egress     bool
	Resolution Resolution
	// OneAddress is set if, under DNS resolution, proxies use only the first
	// address of a name until it changes (ServiceEntry's DNS_ROUND_ROBIN).
	OneAddress bool
	// Sockets is set if instances are Unix sockets on the machine of each caller,
	// so that EDS does not serve them.
	Sockets bool
	// Networks is set if instances are in networks that others reach through
	// gateways, so that their addresses depend on the caller.
	Networks bool
	// SubjectAltNames are names of which an instance's certificate must have one;
	// none means any.
	SubjectAltNames []string
	// HealthCheck is the active health check of the instances, or nil.
	HealthCheck *schema.HealthCheck
	// Withheld is set if the object that declares it exceeds the budget, or has a resolution
	// that no proxy follows. It has no instances, and its clusters are closed.
	Withheld bool
	// Undeclared is set if no service has the host at the port. The service is not
	// in the registry; it represents the host for rules.
	Undeclared bool
	// Instances are in registry order: inline endpoints as written, then
	// WorkloadEntries by namespace and name. There is one for each endpoint and
	// service port.
	Instances []*Instance
	Origin    schema.Key
}

// KeyHost returns the host in keys of the service: the host name, followed by the
// object that declares it unless it is visible to all callers. It depends on
// nothing else, so a key never changes to mean a service for other callers.
func (s *Service) KeyHost() string { return s.Hostname + s.apart }

// NamesExternal reports whether the service is a name inside the mesh for an
// external host, which is found by resolving that name. (Pilot called it a service
// with an external name.)
func (s *Service) NamesExternal() bool {
	return !s.External && s.IsItsOwnEndpoint()
}

// IsItsOwnEndpoint reports whether the host itself is resolved because there are no
// instances.
func (s *Service) IsItsOwnEndpoint() bool {
	return s.Resolution == DNS && len(s.Instances) == 0 && !s.Withheld
}

// Port returns the port with a number, or nil.
func (s *Service) Port(number int) *Port {
	for _, p := range s.Ports {
		if p.Number == number {
			return p
		}
	}
	return nil
}

// PortByName returns the port with a name, or nil.
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
	// Address is an IP address. Under DNS resolution it may be a host name, and
	// otherwise a Unix socket: unix:// followed by its path, or by @ and its name.
	// It may be "" only in a network that has gateways.
	Address string
	// EndpointPort is the port that the instance listens on; 0 for a socket.
	EndpointPort int
	Labels       Labels
	Zone         string // availability zone; "" if unknown
	Network      string // "" if unknown
	Weight       int    // 0 if unset
	Account      string // service account of the workload; "" if it is not stated
	Peer         PeerModes
	// MutualTLS is set if callers that have a certificate use mutual TLS.
	MutualTLS bool
	Origin    schema.Key
}
