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
type domains struct {
	times table[string, int]
	known *identity // another one when there are others
}

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
	return counted(known, times)
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

// SameDomains reports whether proxies that state some domain are told apart as in
// another snapshot: false as well when that is not known.
func (s *Snapshot) SameDomains(other *Snapshot) bool { return s.domains.known == other.domains.known }

// counted are domains of which some, and with them all that they end in, are
// stated so many times more.
func counted(before domains, times map[string]int) domains {
	d, others := before.times.draft(), false
	for domain, n := range times {
		for n != 0 && domain != "" {
			was := d.get(domain)
			if now := was + n; now > 0 {
				d.set(domain, now)
				others = others || was == 0
			} else {
				d.remove(domain)
				others = true
			}
			_, domain, _ = strings.Cut(domain, ".")
		}
	}
	out := domains{d.done(), before.known}
	if others || out.known == nil {
		out.known = new(identity)
	}
	return out
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
	for known != "" && s.domains.times.get(known) == 0 {
		_, known, _ = strings.Cut(known, ".")
	}
	if known == given || !s.Settings.V1Compatibility.ShortNamesByCaller {
		return known
	}
	return strings.TrimSuffix(unknownLabel+"."+known, ".")
}
