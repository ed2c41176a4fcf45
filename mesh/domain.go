package mesh

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
)

// domains are the domains that distinguish proxies, each with all its suffixes: the
// domains of services, whose callers may omit the end of a host name, and the
// namespaces that contain objects or that objects name. They bound the effect of
// what nodes state, which may be anything. Each domain is counted, by the objects
// that need it.
type domains = tally

// domainsAfter returns the domains of a snapshot that follows from before by
// changes; before may be nil.
func (s *Snapshot) domainsAfter(before *Snapshot, changes []schema.Change) domains {
	times := map[string]int{}
	for _, c := range s.ServicesSince(before) {
		s.domainOf(c.Before, -1, times)
		s.domainOf(c.After, 1, times)
	}
	for _, c := range changes {
		s.domainsOf(c.Before, -1, times)
		s.domainsOf(c.After, 1, times)
	}
	var known domains
	if before != nil {
		known = before.domains
	}
	return counted(known, times, outerDomain)
}

// domainOf counts the domain of a service, which may be nil.
func (s *Snapshot) domainOf(svc *Service, n int, times map[string]int) {
	if svc != nil && (!svc.External || s.Settings.V1Compatibility.ShortNamesByCaller) {
		_, domain, _ := strings.Cut(svc.Hostname, ".")
		times[domain] += n
	}
}

// domainsOf counts the domains of the namespaces that an object is in or
// distinguishes. The object may be nil.
func (s *Snapshot) domainsOf(o *schema.Object, n int, times map[string]int) {
	if o == nil {
		return
	}
	in := map[string]bool{o.Meta.Namespace: true}
	if spec, err := o.Spec(); err == nil {
		named(spec, in)
	}
	for namespace := range in {
		times[namespace+".svc."+s.Settings.Domain] += n
	}
}

// outerDomain returns a domain without its first label.
func outerDomain(domain string) string {
	_, outer, _ := strings.Cut(domain, ".")
	return outer
}

// named records the namespaces of proxies that an object distinguishes from others.
func named(spec any, namespaces map[string]bool) {
	if exported, ok := spec.(interface{ GetExportTo() []string }); ok {
		for _, namespace := range exported.GetExportTo() {
			namespaces[namespace] = true
		}
	}
	if vs, ok := spec.(*networking.VirtualService); ok {
		for source := range sources(vs) {
			namespaces[source.GetSourceNamespace()] = true
		}
	}
}

// unknownLabel stands for all first labels of a domain that no object knows. No DNS
// name has it.
const unknownLabel = "_unknown"

// domain maps all domains that give the same configuration to one: the longest
// known suffix. If callers complete short names, a domain that is not known as a
// whole must complete them to names that do not exist either.
func (s *Snapshot) domain(given string) string {
	known := given
	for known != "" && !s.domains.has(known) {
		_, known, _ = strings.Cut(known, ".")
	}
	if known == given || !s.Settings.V1Compatibility.ShortNamesByCaller {
		return known
	}
	return strings.TrimSuffix(unknownLabel+"."+known, ".")
}
