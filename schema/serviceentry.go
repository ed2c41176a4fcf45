package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", Served: networkingVersions,
		Kind: "ServiceEntry", Plural: "serviceentries", Singular: "serviceentry",
		Dashed: "service-entry", ShortNames: []string{"se"},
		Doc: "A ServiceEntry declares a service in the registry of the mesh: its host names, its ports and its instances. " +
			"The instances are a list, WorkloadEntry objects with certain labels, or names in the DNS. With the annotation " + HealthCheckAnnotation + ", proxies check whether the instances are alive, " +
			"and leave out those that are not. Its value is YAML such as {http: {path: /healthz}, interval: 5s, timeout: 1s, unhealthyThreshold: 2, healthyThreshold: 1}. " +
			"In place of http, tcp: {} checks that a connection can be opened, and grpc: {service: name} asks by gRPC.",
		Columns: []Column{
			listColumn("Hosts", "The host names of the service.", ",", func(s *networking.ServiceEntry) []string { return s.Hosts }),
			stringColumn("Location", "Inside or outside the mesh.", func(s *networking.ServiceEntry) string { return s.Location.String() }),
			stringColumn("Resolution", "How instances are found.", func(s *networking.ServiceEntry) string { return s.Resolution.String() }),
			wideColumn("Ports", "The ports, with protocols.", servicePortsText),
			wideColumn("Addresses", "The addresses of the service itself.", func(s *networking.ServiceEntry) string { return strings.Join(s.Addresses, ",") }),
		},
		selectable: []SelectableField{
			selectable("spec.hosts", func(s *networking.ServiceEntry) []string { return s.Hosts }),
			selectable("spec.addresses", func(s *networking.ServiceEntry) []string { return s.Addresses }),
		},
		spec:  inProto[networking.ServiceEntry](),
		check: checkAs(checkServiceEntry),
	})
}

// portProtocols are the protocols of a service port, in the order in which messages
// list them. They are accepted in any case.
var portProtocols = []string{"HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTPS", "TLS", "TCP", "MONGO", "REDIS", "MYSQL", "UDP"}

func (p *problems) protocol(field, name string) {
	if name != "" && !slices.Contains(portProtocols, strings.ToUpper(name)) {
		p.notSupportedValue(field, name, "must be one of "+strings.Join(portProtocols, ", "))
	}
}

func servicePortsText(s *networking.ServiceEntry) string {
	parts := make([]string, len(s.Ports))
	for i, port := range s.Ports {
		parts[i] = fmt.Sprintf("%d/%s", port.Number, port.Protocol)
	}
	return strings.Join(parts, ",")
}

func checkServiceEntry(s *networking.ServiceEntry) diag.List {
	var p problems
	p.hosts(s)
	p.addresses(s)
	p.ports(s)
	p.resolution(s)
	names := portNames(s)
	for i, endpoint := range s.Endpoints {
		p.endpoint(indexField("spec.endpoints", i), endpoint, s, names)
	}
	p.exportTo(s.ExportTo)
	if s.WorkloadSelector != nil && len(s.WorkloadSelector.Labels) == 0 {
		p.suspect("spec.workloadSelector", "has no labels, so it selects every WorkloadEntry of the namespace")
	}
	p.within(MultipliesTo(s, 0))
	return p.list
}

func (p *problems) hosts(s *networking.ServiceEntry) {
	seen := map[string]int{}
	for i, host := range s.Hosts {
		at := indexField("spec.hosts", i)
		wildcard := strings.HasPrefix(host, "*")
		switch {
		case host == "*":
			p.invalidValue(at, host, "must not be the bare wildcard: a service has a name; *.example.com would do")
		case repeated(p, at, "spec.hosts", seen, host, i):
		case wildcard && byDNS(s) && len(s.Endpoints) == 0:
			p.invalidValue(at, host, fmt.Sprintf("must be a whole host name for resolution %s without endpoints: a wildcard cannot be looked up", s.Resolution))
		case !wildcard && s.Resolution == networking.ServiceEntry_DYNAMIC_DNS:
			p.invalidValue(at, host, "must be a wildcard such as *.example.com for resolution DYNAMIC_DNS; use DNS for a whole host name")
		}
	}
}

func byDNS(s *networking.ServiceEntry) bool {
	return s.Resolution == networking.ServiceEntry_DNS || s.Resolution == networking.ServiceEntry_DNS_ROUND_ROBIN
}

func (p *problems) addresses(s *networking.ServiceEntry) {
	for i, address := range s.Addresses {
		if strings.Contains(address, "/") && s.Resolution != networking.ServiceEntry_NONE && s.Resolution != networking.ServiceEntry_STATIC {
			p.invalidValue(fmt.Sprintf("spec.addresses[%d]", i), address, "must be a single address: a range goes with resolution NONE or STATIC only")
		}
	}
}

func (p *problems) ports(s *networking.ServiceEntry) {
	if len(s.Ports) == 0 {
		p.suspect("spec.ports", "are not given, so nobody can be sent to the service")
	}
	names, numbers := map[string]int{}, map[uint32]int{}
	for i, port := range s.Ports {
		at := fmt.Sprintf("spec.ports[%d]", i)
		repeated(p, at+".name", "spec.ports", names, port.Name, i)
		repeated(p, at+".number", "spec.ports", numbers, port.Number, i)
		p.protocol(at+".protocol", port.Protocol)
	}
}

// resolution applies the rules on how instances are found, from the reference page
// of ServiceEntry and from Istio's own resource definition.
func (p *problems) resolution(s *networking.ServiceEntry) {
	p.exportTo(s.ExportTo)
	if s.WorkloadSelector != nil && len(s.Endpoints) > 0 {
		p.forbidden("spec.workloadSelector", "cannot be given together with endpoints: instances are listed or selected, not both")
	}
	switch s.Resolution {
	case networking.ServiceEntry_NONE:
		if len(s.Endpoints) > 0 {
			p.forbidden("spec.endpoints", "cannot be given with resolution NONE, which goes where the caller already meant to; use STATIC or DNS")
		}
		if s.WorkloadSelector != nil {
			p.warn("spec.workloadSelector", "has no effect with resolution NONE, which is the default; use STATIC")
		}
	case networking.ServiceEntry_STATIC:
		if len(s.Endpoints) == 0 && s.WorkloadSelector == nil {
			p.suspect("spec.endpoints", "are not given, and no workloadSelector, so the service with resolution STATIC has no instances")
		}
	case networking.ServiceEntry_DNS_ROUND_ROBIN:
		if len(s.Endpoints) > 1 {
			p.invalid("spec.endpoints", "must be at most one with resolution DNS_ROUND_ROBIN")
		}
	case networking.ServiceEntry_DYNAMIC_DNS:
		p.dynamicDNS(s)
	}
}

// dynamicDNS checks a service whose proxies look up the host that each request
// names. It needs no lists, and cannot serve a protocol that names no host.
func (p *problems) dynamicDNS(s *networking.ServiceEntry) {
	p.warnOf(diag.PartLeftOut, "spec.resolution", "DYNAMIC_DNS: requests for the hosts fail, as no proxy looks up the host of each request")
	const why = "cannot be given with resolution DYNAMIC_DNS, which looks up the host of each request"
	if len(s.Endpoints) > 0 {
		p.forbidden("spec.endpoints", why)
	}
	if s.WorkloadSelector != nil {
		p.warn("spec.workloadSelector", "has no effect with resolution DYNAMIC_DNS, which looks up the host of each request")
	}
	if len(s.Addresses) > 0 {
		p.forbidden("spec.addresses", why)
	}
	for i, port := range s.Ports {
		switch strings.ToUpper(port.Protocol) {
		case "HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTPS", "TLS":
		default:
			p.notSupportedValue(fmt.Sprintf("spec.ports[%d].protocol", i), port.Protocol, "must be HTTP, HTTP2, GRPC, GRPC-WEB, HTTPS or TLS with resolution DYNAMIC_DNS: only those name a host")
		}
	}
}

// endpoint checks a WorkloadEntry inside a ServiceEntry: its address must also suit
// the resolution, and its ports those of the service.
func (p *problems) endpoint(field string, e *networking.WorkloadEntry, s *networking.ServiceEntry, names map[string]bool) {
	p.workload(field, e)
	p.endpointAddress(field+".address", e, s)
	if strings.HasPrefix(e.Address, unixPrefix) && len(s.Ports) != 1 {
		p.invalid("spec.ports", "must be exactly one when an endpoint is a Unix socket")
	}
	for name := range e.Ports {
		if !names[name] {
			p.invalid(keyField(field+".ports", name), "must be named after a port of the service: "+some(slices.Sorted(maps.Keys(names))))
		}
	}
}

func (p *problems) endpointAddress(field string, e *networking.WorkloadEntry, s *networking.ServiceEntry) {
	unix := strings.HasPrefix(e.Address, unixPrefix)
	switch {
	case e.Address == "":
	case s.Resolution == networking.ServiceEntry_STATIC && !isIP(e.Address) && !unix:
		p.invalidValue(field, e.Address, "must be an IP address with resolution STATIC; use DNS for host names")
	case byDNS(s) && unix:
		p.invalidValue(field, e.Address, fmt.Sprintf("must be a host name or an IP address with resolution %s", s.Resolution))
	}
}

func portNames(s *networking.ServiceEntry) map[string]bool {
	names := make(map[string]bool, len(s.Ports))
	for _, port := range s.Ports {
		names[port.Name] = true
	}
	return names
}
