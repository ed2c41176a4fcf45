package mesh

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
)

// domains are those among which a proxy's own makes a difference, each with all
// that it ends in: the domains of services, by which callers may leave out the
// end of a host name, and the namespaces that objects are in or name. They are
// a bound to what nodes say of themselves, which is anything. Of each it is
// counted how many state it.
type domains = tally

// domainsAfter are those of a snapshot that came by changes from one before, nil
// for none.
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

// domainOf counts the domain of a service, unless it is nil.
func (s *Snapshot) domainOf(svc *Service, n int, times map[string]int) {
	if svc != nil && (!svc.External || s.Settings.V1Compatibility.ShortNamesByCaller) {
		_, domain, _ := strings.Cut(svc.Hostname, ".")
		times[domain] += n
	}
}

// domainsOf counts those of the namespaces that an object, unless it is nil, is
// in or tells from others.
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

// outerDomain is what a domain ends in.
func outerDomain(domain string) string {
	_, outer, _ := strings.Cut(domain, ".")
	return outer
}

// named notes the namespaces of proxies that an object tells from others.
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

// unknownLabel stands for all that names of a domain begin with and no object
// knows. No DNS name has it.
const unknownLabel = "_unknown"

// domain is one for all that give the same configuration: as much of its end
// as is known. Where callers complete short names, one that is not known whole
// must complete them to what is not there either.
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
