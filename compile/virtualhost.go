package compile

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// table is the route table of one port while its virtual hosts are collected.
type table struct {
	port    int
	first   *mesh.Service
	origins []diag.Ref // objects that declare the services, each once
	plain   []*entry   // of hosts whose domains no other host wants
	hosts   []*candidate

	declared map[diag.Ref]bool
}

func newTable(port int, first *mesh.Service) *table {
	return &table{port: port, first: first, declared: map[diag.Ref]bool{}}
}

func (t *table) declaredBy(ref diag.Ref) {
	if !t.declared[ref] {
		t.declared[ref] = true
		t.origins = append(t.origins, ref)
	}
}

// candidate is a virtual host without final domains. A domain may occur only once
// in a table; otherwise Envoy rejects the whole table.
type candidate struct {
	*ir.VirtualHost
	service *mesh.Service
	port    *mesh.Port
}

// newCandidate returns a virtual host with a name and the domains that it wants, in
// Pilot's order.
func newCandidate(svc *mesh.Service, port *mesh.Port, proxyDomain string) *candidate {
	host := &candidate{&ir.VirtualHost{}, svc, port}
	number := strconv.Itoa(port.Number)
	if svc.External {
		host.Name = svc.Hostname + ":" + number
		host.Domains = []string{svc.Hostname, host.Name}
		host.callBy(number, wholeAddresses(svc)...)
		return host
	}
	host.Name = mesh.NewServiceKey(svc, port, nil).String()
	host.callBy(number, hostForms(svc.Hostname, proxyDomain)...)
	host.callBy(number, wholeAddresses(svc)...)
	return host
}

// callBy adds names, each with and without the port.
func (h *candidate) callBy(port string, names ...string) {
	for _, name := range names {
		h.Domains = append(h.Domains, net.JoinHostPort(name, port), bracketed(name))
	}
}

// wholeAddresses returns the addresses that a Host header can name. It omits
// blocks.
func wholeAddresses(svc *mesh.Service) []string {
	return slices.DeleteFunc(slices.Clone(svc.Addresses), func(address string) bool { return strings.Contains(address, "/") })
}

// bracketed returns a host as written in a Host header without a port.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// hostForms returns the names by which a proxy of the domain may call a host. It
// removes the longest common suffix, then adds the longer forms label by label. A
// wildcard has no shorter form, as that would match more.
func hostForms(host, domain string) []string {
	if strings.HasPrefix(host, "*") {
		return []string{host}
	}
	labels, theirs := strings.Split(host, "."), strings.Split(domain, ".")
	shared := 0
	for shared < len(labels) && shared < len(theirs) &&
		labels[len(labels)-1-shared] == theirs[len(theirs)-1-shared] {
		shared++
	}
	var forms []string
	for n := max(1, len(labels)-shared); n <= len(labels); n++ {
		forms = append(forms, strings.Join(labels[:n], "."))
	}
	return forms
}

func (t *table) add(host *candidate) { t.hosts = append(t.hosts, host) }

// claimDomains assigns each domain to one virtual host. It reports hosts that lose
// a domain, and removes hosts without domains.
func (t *table) claimDomains(v *viewpoint, owners *addressOwners) diag.List {
	port := strconv.Itoa(t.port)
	claims := map[string][]nameClaim{}
	for _, host := range t.hosts {
		for _, domain := range host.Domains {
			if name, ok := host.claims(domain, port, owners); ok {
				claim := v.claimOf(host.service, name)
				claim.host = host
				claims[name] = append(claims[name], claim)
			}
		}
	}
	first := map[string]nameClaim{}
	for name, all := range claims {
		first[name] = v.firstOf(all)
	}
	var problems diag.List
	for _, host := range t.hosts {
		host.Domains = slices.DeleteFunc(host.Domains, func(domain string) bool {
			name, ok := host.claims(domain, port, owners)
			says := strings.HasSuffix(domain, ":"+port)
			switch owner := first[name]; {
			case !ok && says:
				problems = append(problems, t.lostAddress(host, owners.lostAt(host.at(), name), domain))
			case ok && owner.host != host && says:
				problems = append(problems, t.lostDomain(v, host, owner, name, domain))
			case ok:
				return owner.host != host
			}
			return true
		})
	}
	t.hosts = slices.DeleteFunc(t.hosts, func(host *candidate) bool { return len(host.Domains) == 0 })
	return problems
}

// claims returns the name that a domain stands for, in lower case as Envoy compares
// it, and whether the host may have it. It may not if the name is an address that
// another service owns.
func (h *candidate) claims(domain, port string, owners *addressOwners) (string, bool) {
	name := nameOf(domain, port)
	return name, owners.lostAt(h.at(), name) == nil
}

func (h *candidate) at() servicePort { return servicePort{h.service, h.port} }

func (t *table) lostDomain(v *viewpoint, host *candidate, owner nameClaim, name, domain string) diag.Problem {
	lost := v.claimOf(host.service, name)
	advice := "call this service by its whole name"
	if lost.whole {
		advice = "give this service another host"
	}
	return lostName(host, fmt.Sprintf("requests to %s go to %s of %s, %s; %s",
		domain, owner.service.Hostname, owner.service.Origin, v.whyFirst(owner, lost), advice))
}

func (t *table) lostAddress(host *candidate, owner *mesh.Service, domain string) diag.Problem {
	return lostName(host, fmt.Sprintf("requests to %s do not reach this service: the address is one of %s of %s, %s; give this service another address",
		domain, owner.Hostname, owner.Origin, whyOlder(owner, host.service)))
}

func lostName(host *candidate, message string) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.NameShared, Object: host.service.Origin.Ref(), Field: "spec.hosts",
		Value: fmt.Sprintf("%q", host.service.Hostname), Message: message,
	}
}
