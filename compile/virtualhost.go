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

// table is the route table of one port while its virtual hosts are gathered.
type table struct {
	port    int
	first   *mesh.Service
	origins []diag.Ref // that declare the services, each once
	plain   []*entry   // of hosts whose domains nobody else would like
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

// candidate is a virtual host that has yet to get its domains: a domain may
// stand only once in a table, and Envoy refuses the whole table otherwise.
type candidate struct {
	*ir.VirtualHost
	service *mesh.Service
	port    *mesh.Port
}

// newCandidate names a virtual host and lists the domains it would like, in
// the order of Pilot.
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

// callBy adds names, each with the port and without.
func (h *candidate) callBy(port string, names ...string) {
	for _, name := range names {
		h.Domains = append(h.Domains, net.JoinHostPort(name, port), bracketed(name))
	}
}

// wholeAddresses are those that a Host header can name: no block can.
func wholeAddresses(svc *mesh.Service) []string {
	return slices.DeleteFunc(slices.Clone(svc.Addresses), func(address string) bool { return strings.Contains(address, "/") })
}

// bracketed is how a host stands in a Host header without a port.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// hostForms are the names by which a proxy of that domain may call a host: the
// longest suffix that both share is split off, then each longer form is added
// one label at a time. A wildcard has no shorter form: it would take more.
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

// claimDomains gives every domain to one virtual host. A whole host name goes
// to its service; of services that share a short form or an address, the
// first by name has it. Hosts that lose one are reported.
func (t *table) claimDomains() diag.List {
	owners := map[string]*candidate{}
	port := strconv.Itoa(t.port)
	for _, host := range t.hosts {
		owners[host.service.Hostname] = host
		owners[net.JoinHostPort(host.service.Hostname, port)] = host
	}
	var problems diag.List
	for _, host := range t.hosts {
		host.Domains = slices.DeleteFunc(host.Domains, func(domain string) bool {
			if owners[domain] == nil {
				owners[domain] = host
			}
			lost := owners[domain] != host
			if lost && strings.HasSuffix(domain, ":"+port) {
				problems = append(problems, t.lostDomain(host, owners[domain], domain))
			}
			return lost
		})
	}
	return problems
}

func (t *table) lostDomain(host, owner *candidate, domain string) diag.Problem {
	return diag.Problem{
		Severity: diag.Warning, Reason: diag.Conflict, Code: diag.NameShared, Object: host.service.Origin.Ref(), Field: "spec.hosts",
		Value: fmt.Sprintf("%q", host.service.Hostname),
		Message: fmt.Sprintf("requests to %s go to %s of %s; call this service by its whole name",
			domain, owner.service.Hostname, owner.service.Origin),
	}
}
