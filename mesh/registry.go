package mesh

import (
	"cmp"
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// registry collects services while it reads ServiceEntries in key order.
type registry struct {
	workloads workloads
	byHost    map[string]*Service
	services  []*Service
	problems  diag.List
}

// buildRegistry makes the services, sorted by host name, out of entries and
// workloads in key order. What cannot be a service or an instance is left out
// and becomes a problem on its object.
func buildRegistry(entries, workloadEntries []*schema.Object) ([]*Service, diag.List) {
	r := &registry{byHost: map[string]*Service{}}
	r.workloads = indexWorkloads(workloadEntries, r.report)
	for _, o := range entries {
		spec, err := o.Spec()
		entry, ok := spec.(*networking.ServiceEntry)
		if err != nil || !ok {
			r.report(unreadable(o, err))
			continue
		}
		r.add(o, entry)
	}
	r.workloads.reportUnselected(r.report)
	slices.SortFunc(r.services, func(a, b *Service) int { return cmp.Compare(a.Hostname, b.Hostname) })
	slices.SortStableFunc(r.problems, func(a, b diag.Problem) int {
		return cmp.Compare(a.Object.String(), b.Object.String())
	})
	return r.services, r.problems
}

func (r *registry) report(p diag.Problem) { r.problems = append(r.problems, p) }

// add declares every host of an entry that no earlier entry has. All of them
// have the same ports and endpoints.
func (r *registry) add(o *schema.Object, entry *networking.ServiceEntry) {
	resolution, ok := r.resolution(o, entry)
	if !ok {
		return
	}
	ports := r.ports(o, entry)
	endpoints := r.endpoints(o, entry, resolution)
	for i, host := range entry.GetHosts() {
		if first, taken := r.byHost[host]; taken {
			r.report(conflictingHost(o, i, host, first))
			continue
		}
		svc := &Service{
			Hostname:   host,
			Namespace:  o.Meta.Namespace,
			Address:    address(entry),
			Ports:      ports,
			External:   entry.GetLocation() == networking.ServiceEntry_MESH_EXTERNAL,
			Resolution: resolution,
			Origin:     o.Key(),
		}
		svc.Instances = instances(svc, entry, endpoints)
		r.byHost[host] = svc
		r.services = append(r.services, svc)
	}
	r.reportIgnored(o, entry)
}

func (r *registry) resolution(o *schema.Object, entry *networking.ServiceEntry) (Resolution, bool) {
	switch entry.GetResolution() {
	case networking.ServiceEntry_STATIC:
		return Static, true
	case networking.ServiceEntry_DNS, networking.ServiceEntry_DNS_ROUND_ROBIN:
		return DNS, true
	case networking.ServiceEntry_NONE:
		return Passthrough, true
	}
	r.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Object: o.Key().Ref(), Field: "spec.resolution",
		Value:   fmt.Sprintf("%q", entry.GetResolution()),
		Message: "the hosts are left out of the registry: use NONE, STATIC, DNS or DNS_ROUND_ROBIN",
	})
	return "", false
}

func (r *registry) ports(o *schema.Object, entry *networking.ServiceEntry) []*Port {
	var ports []*Port
	for i, p := range entry.GetPorts() {
		protocol, ok := ParseProtocol(p.GetProtocol())
		if !ok {
			r.report(diag.Problem{
				Severity: diag.Warning, Reason: diag.FieldNotSupported, Object: o.Key().Ref(),
				Field: fmt.Sprintf("spec.ports[%d].protocol", i), Value: fmt.Sprintf("%q", p.GetProtocol()),
				Message: "the port is left out: use HTTP, HTTP2, GRPC, HTTPS, TCP, TLS, Mongo, Redis or UDP",
			})
			continue
		}
		ports = append(ports, &Port{Name: p.GetName(), Number: int(p.GetNumber()), Protocol: protocol})
	}
	return ports
}

// address is the first one: a proxy has one listener per service port.
func address(entry *networking.ServiceEntry) string {
	if len(entry.GetAddresses()) == 0 {
		return ""
	}
	return canonicalIP(entry.GetAddresses()[0])
}

// reportIgnored tells what a valid entry says that no proxy will follow.
func (r *registry) reportIgnored(o *schema.Object, entry *networking.ServiceEntry) {
	ignored := func(field, value, message string) {
		r.report(diag.Problem{
			Severity: diag.Warning, Reason: diag.NotHonoured, Object: o.Key().Ref(),
			Field: field, Value: value, Message: message,
		})
	}
	if n := len(entry.GetAddresses()); n > 1 {
		ignored("spec.addresses", fmt.Sprintf("%d addresses", n), "only the first address is served")
	}
	if to := entry.GetExportTo(); len(to) > 0 && !slices.Contains(to, "*") {
		ignored("spec.exportTo", fmt.Sprintf("%q", to), "the service is visible to every namespace")
	}
	if names := entry.GetSubjectAltNames(); len(names) > 0 {
		ignored("spec.subjectAltNames", fmt.Sprintf("%q", names), "certificates of endpoints are not checked")
	}
	for i, e := range entry.GetEndpoints() {
		reportUnheeded(e, o.Key().Ref(), fmt.Sprintf("spec.endpoints[%d]", i), r.report)
	}
}

func conflictingHost(o *schema.Object, i int, host string, first *Service) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Object: o.Key().Ref(),
		Field: fmt.Sprintf("spec.hosts[%d]", i), Value: fmt.Sprintf("%q", host),
		Message: fmt.Sprintf("the host is declared by %s, which comes first by namespace and name; this declaration has no effect", first.Origin),
	}
}

func unreadable(o *schema.Object, err error) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.Malformed, Object: o.Key().Ref(), Field: "spec",
		Message: fmt.Sprintf("the object is left out, its spec does not decode: %v", err),
	}
}
