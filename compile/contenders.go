package compile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/mesh"
)

// maxContenders is how many names of a port are looked at to lay out the virtual hosts of
// some called hosts. Beyond it, the whole table is laid out.
const maxContenders = 1 << 13

// contenders are the services and rules of a port that may want the names of some hosts,
// or a name that one of these wants, and so on. The virtual hosts of a table that has only
// the contenders have the same domains as in the whole table, because no other service or
// rule wants a name of theirs. Wildcards always belong to them.
type contenders struct {
	services []*mesh.Service // in the order of servicesFor
	rules    *undeclared
}

// contention finds contenders.
type contention struct {
	*reader
	scope     scope
	namespace string
	port      int

	names  map[string]bool // in lower case, without the port
	next   []string        // names that nobody was found for yet
	found  map[*mesh.Service]bool
	egress []*mesh.Service
	rules  map[string]ruledHost
}

// contendersAt returns the contenders for some hosts at a port. The scope has no Sidecar
// that limits its hosts. It returns nil if there are too many.
func (rd *reader) contendersAt(s scope, port int, hosts []string) *contenders {
	namespace := rd.forDomain(s.domain).namespace
	c := &contention{
		reader: rd, scope: s, namespace: namespace, port: port,
		names: map[string]bool{}, found: map[*mesh.Service]bool{}, egress: rd.egressFor(s, namespace), rules: map[string]ruledHost{},
	}
	for _, host := range hosts {
		c.want(nameOf(host, ""))
	}
	c.wildcards()
	for len(c.next) > 0 && len(c.names) <= maxContenders {
		name := c.next[0]
		c.next = c.next[1:]
		c.wanting(name)
	}
	if len(c.names) > maxContenders {
		return nil
	}
	return c.result()
}

// want adds names.
func (c *contention) want(names ...string) {
	for _, name := range names {
		if !c.names[name] {
			c.names[name] = true
			c.next = append(c.next, name)
		}
	}
}

// wildcards adds all services and rules for wildcards, and the hosts of EgressRules, which
// are few.
func (c *contention) wildcards() {
	for _, svc := range c.registry.wild.under(c.reader, none{}) {
		c.service(svc, "")
	}
	for _, svc := range c.egress {
		c.service(svc, "")
	}
	for part, g := range c.undeclaredParts(c.scope) {
		if g.wild {
			for _, host := range slices.Concat(part.hosts, part.first) {
				c.rule(host)
			}
		}
	}
}

// wanting adds the services and rules that want a name.
func (c *contention) wanting(name string) {
	for _, svc := range c.registry.byName.under(c.reader, name) {
		c.service(svc, name)
	}
	if c.scope.role != mesh.Sidecar {
		return
	}
	hosts := []string{name}
	for rest := "." + c.scope.domain; rest != ""; {
		hosts = append(hosts, name+rest)
		if _, after, more := strings.Cut(rest[1:], "."); more {
			rest = "." + after
		} else {
			rest = ""
		}
	}
	for _, host := range hosts {
		for _, host := range []string{host, host + "."} {
			if slices.ContainsFunc(c.virtualByHost.under(c.reader, host), func(vs *virtualService) bool { return vs.routesSidecars() != nil }) {
				c.rule(host)
			}
		}
	}
}

// service adds a service if its callers call it by HTTP at the port, by the name if it is
// not empty.
func (c *contention) service(svc *mesh.Service, name string) {
	if c.found[svc] || !svc.Egress && !svc.VisibleIn(c.namespace) {
		return
	}
	port := c.httpPort(svc)
	if port == nil {
		return
	}
	names := namesAt(svc, port, c.scope.domain)
	if name == "" || slices.Contains(names, name) {
		c.found[svc] = true
		c.want(names...)
	}
}

func (c *contention) httpPort(svc *mesh.Service) *mesh.Port {
	at := slices.IndexFunc(svc.Ports, func(port *mesh.Port) bool { return port.Number == c.port && c.routesHTTP(svc, port) })
	if at < 0 {
		return nil
	}
	return svc.Ports[at]
}

// rule adds a host that a VirtualService names.
func (c *contention) rule(host string) {
	if _, known := c.rules[host]; known {
		return
	}
	c.rules[host] = c.ruledIn(c.scope, host)
	if c.rules[host].reach == nowhere {
		return
	}
	for _, form := range hostForms(strings.TrimSuffix(host, "."), c.scope.domain) {
		c.want(strings.ToLower(form))
	}
}

func (c *contention) result() *contenders {
	out := &contenders{rules: &undeclared{}}
	for svc := range c.found {
		if !svc.Egress {
			out.services = append(out.services, svc)
		}
	}
	slices.SortFunc(out.services, mesh.CompareServices)
	for _, svc := range c.egress {
		if c.found[svc] {
			out.services = append(out.services, svc)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(c.rules)) {
		out.rules.add(host, c.rules[host])
	}
	out.rules.sort()
	return out
}

// namesOf returns all names by which callers of any domain may call a service by HTTP, as
// an Envoy compares them.
func (m *model) namesOf(svc *mesh.Service) []string {
	var out []string
	for _, port := range svc.Ports {
		if m.routesHTTP(svc, port) {
			out = append(out, namesAt(svc, port, svc.Hostname)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// namesAt returns the names by which callers of a domain call a port of a service.
func namesAt(svc *mesh.Service, port *mesh.Port, domain string) []string {
	var out []string
	for _, wanted := range newCandidate(svc, port, domain).Domains {
		out = append(out, nameOf(wanted, strconv.Itoa(port.Number)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nameOf returns the name that a domain with or without a port stands for, in lower case
// as an Envoy compares it.
func nameOf(domain, port string) string {
	name := strings.ToLower(strings.TrimSuffix(domain, ":"+port))
	return strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
}
