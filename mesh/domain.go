package mesh

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// domains are those among which a proxy's own makes a difference, each with all
// that it ends in: the domains of services, by which callers may leave out the
// end of a host name, and the namespaces that objects are in or name. They are
// a bound to what nodes say of themselves, which is anything.
type domains map[string]bool

// named notes the namespaces of proxies that an object tells from others.
func named(spec any, namespaces map[string]bool) {
	if exported, ok := spec.(interface{ GetExportTo() []string }); ok {
		for _, namespace := range exported.GetExportTo() {
			namespaces[namespace] = true
		}
	}
	vs, _ := spec.(*networking.VirtualService)
	for _, r := range vs.GetHttp() {
		for _, m := range r.GetMatch() {
			namespaces[m.GetSourceNamespace()] = true
		}
	}
	for _, r := range vs.GetTls() {
		for _, m := range r.GetMatch() {
			namespaces[m.GetSourceNamespace()] = true
		}
	}
	for _, r := range vs.GetTcp() {
		for _, m := range r.GetMatch() {
			namespaces[m.GetSourceNamespace()] = true
		}
	}
}

func (d domains) add(domain string) {
	for domain != "" && !d[domain] {
		d[domain] = true
		_, domain, _ = strings.Cut(domain, ".")
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
	for known != "" && !s.domains[known] {
		_, known, _ = strings.Cut(known, ".")
	}
	if known == given || !s.Settings.V1Compatibility.ShortNamesByCaller {
		return known
	}
	return strings.TrimSuffix(unknownLabel+"."+known, ".")
}
