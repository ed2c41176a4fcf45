package mesh

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// registry collects services while it reads ServiceEntries.
type registry struct {
	settings  *Settings
	workloads workloads
	claims    map[string][]*claim // by host, first to have it first
	services  []*Service
	problems  diag.Collector
}

// buildRegistry makes the services, sorted by host name, those of one host as
// they come first, out of entries and
// workloads in key order. What cannot be a service or an instance is left out
// and becomes a problem on its object.
func buildRegistry(settings *Settings, entries, workloadEntries []*schema.Object) ([]*Service, diag.List) {
	r := &registry{settings: settings, claims: map[string][]*claim{}}
	r.workloads = indexWorkloads(workloadEntries, r.report)
	readable := r.readable(entries)
	for _, e := range readable {
		r.claim(e)
	}
	r.settle()
	for _, e := range readable {
		r.add(e)
	}
	r.link()
	r.workloads.reportUnselected(r.report)
	slices.SortStableFunc(r.services, func(a, b *Service) int { return cmp.Compare(a.Hostname, b.Hostname) })
	problems := r.problems.List()
	slices.SortStableFunc(problems, func(a, b diag.Problem) int {
		return cmp.Compare(a.Object.String(), b.Object.String())
	})
	return r.services, problems
}

func (r *registry) report(p diag.Problem) { r.problems.Add(p) }

// readableEntry is a ServiceEntry that can be used.
type readableEntry struct {
	*schema.Object
	spec   *networking.ServiceEntry
	claims []*claim // one for each host, nil for one that stands a second time
}

// readable are the entries by age, then by key.
func (r *registry) readable(entries []*schema.Object) []*readableEntry {
	var out []*readableEntry
	for _, o := range ByAge(entries) {
		spec, err := o.Spec()
		entry, ok := spec.(*networking.ServiceEntry)
		if err != nil || !ok {
			r.report(unreadable(o, err))
			continue
		}
		if res := entry.GetResolution(); !known(res) {
			r.report(unknownResolution(o, res))
			continue
		}
		out = append(out, &readableEntry{Object: o, spec: entry})
	}
	return out
}

// NamespaceOf is the namespace in a name like reviews.default.svc.cluster.local
// or default.svc.cluster.local; "" when there is none.
func NamespaceOf(name, domain string) string {
	local, ok := strings.CutSuffix(name, ".svc."+domain)
	if !ok {
		return ""
	}
	return local[strings.LastIndexByte(local, '.')+1:]
}

// add declares the hosts that are an entry's own. All of them have the same
// ports and endpoints.
func (r *registry) add(e *readableEntry) {
	o, entry := e.Object, e.spec
	resolution := resolutions[entry.GetResolution()]
	ports := r.ports(o, entry)
	places := r.places(ports, r.endpoints(o, entry, resolution))
	for i, host := range entry.GetHosts() {
		c := e.claims[i]
		if c == nil {
			r.report(r.repeated(o, i, host))
			continue
		}
		if c.lostTo != nil {
			r.report(r.conflict(c, i, host))
		}
		if c.void {
			continue
		}
		svc := &Service{
			Hostname:   host,
			Namespace:  o.Meta.Namespace,
			ExportTo:   r.settings.ExportTo(entry.GetExportTo()),
			Address:    address(entry),
			Ports:      ports,
			External:   entry.GetLocation() == networking.ServiceEntry_MESH_EXTERNAL,
			Resolution: resolution,
			Origin:     o.Key(),
		}
		svc.Instances = instances(svc, places)
		c.service = svc
	}
	r.reportIgnored(o, entry)
}

var resolutions = map[networking.ServiceEntry_Resolution]Resolution{
	networking.ServiceEntry_STATIC:          Static,
	networking.ServiceEntry_DNS:             DNS,
	networking.ServiceEntry_DNS_ROUND_ROBIN: DNS,
	networking.ServiceEntry_NONE:            Passthrough,
}

func known(r networking.ServiceEntry_Resolution) bool { return resolutions[r] != "" }

func unknownResolution(o *schema.Object, r networking.ServiceEntry_Resolution) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.NotHonoured, Object: o.Key().Ref(), Field: "spec.resolution",
		Value:   fmt.Sprintf("%q", r),
		Message: "the hosts are left out of the registry: use NONE, STATIC, DNS or DNS_ROUND_ROBIN",
	}
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
	if names := entry.GetSubjectAltNames(); len(names) > 0 {
		ignored("spec.subjectAltNames", fmt.Sprintf("%q", names), "certificates of endpoints are not checked")
	}
	for i, p := range entry.GetPorts() {
		if target := p.GetTargetPort(); target != 0 && resolutions[entry.GetResolution()] == Passthrough {
			ignored(fmt.Sprintf("spec.ports[%d].targetPort", i), fmt.Sprint(target), "resolution NONE goes to the port that the caller meant")
		}
	}
	for i, e := range entry.GetEndpoints() {
		reportUnheeded(e, o.Key().Ref(), fmt.Sprintf("spec.endpoints[%d]", i), r.report)
	}
}

func unreadable(o *schema.Object, err error) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.Malformed, Object: o.Key().Ref(), Field: "spec",
		Message: fmt.Sprintf("the object is left out, its spec does not decode: %v", err),
	}
}
