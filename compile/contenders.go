package compile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/mesh"
)

// maxContenders is how many names of a port are looked at for one called host, and how many
// services and rules for all of them. Beyond it, the whole table is laid out.
const maxContenders = 1 << 13

// contenders are the services and rules of a port that may want the names of some hosts,
// or a name that one of these wants, and so on. The virtual hosts of a table that has only
// the contenders have the same domains as in the whole table, because no other service or
// rule wants a name of theirs. Wildcards always belong to them.
type contenders struct {
	services []*mesh.Service // in the order of servicesFor
	rules    map[string]ruledHost
}

func (c *contenders) equal(other *contenders) bool {
	return c == other || c != nil && other != nil && slices.Equal(c.services, other.services) && maps.Equal(c.rules, other.rules)
}

// contendersKey is a host that callers of a scope call at a port, or "" for the wildcards.
type contendersKey struct {
	scope scope
	port  int
	host  string
}

// contendersAt returns the contenders for some hosts at a port. The scope has no Sidecar
// that limits its hosts. It returns nil if there are too many. The contenders for one more
// host are found without looking again at those for the others.
func (rd *reader) contendersAt(s scope, port int, hosts []string) *contenders {
	found, out := map[*mesh.Service]bool{}, &contenders{rules: map[string]ruledHost{}}
	for _, host := range append([]string{""}, hosts...) {
		some := rd.contenders.Get(rd.r, contendersKey{ruleScope(s), port, host})
		if some == nil {
			return nil
		}
		for _, svc := range some.services {
			found[svc] = true
		}
		maps.Copy(out.rules, some.rules)
	}
	if len(found)+len(out.rules) > maxContenders {
		return nil
	}
	out.services = rd.inServiceOrder(s, found)
	return out
}

// inServiceOrder returns services in the order of servicesFor.
func (rd *reader) inServiceOrder(s scope, found map[*mesh.Service]bool) (out []*mesh.Service) {
	for svc := range found {
		if !svc.Egress {
			out = append(out, svc)
		}
	}
	slices.SortFunc(out, mesh.CompareServices)
	for _, svc := range rd.egressFor(s, rd.forDomain(s.domain).namespace) {
		if found[svc] {
			out = append(out, svc)
		}
	}
	return out
}

// undeclared returns the hosts of the rules as undeclaredIn does.
func (c *contenders) undeclared() *undeclared {
	out := &undeclared{}
	for _, host := range slices.Sorted(maps.Keys(c.rules)) {
		out.add(host, c.rules[host])
	}
	out.sort()
	return out
}

// contention finds contenders.
type contention struct {
	*reader
	scope     scope
	namespace string
	port      int

	names map[string]bool // in lower case, without the port
	next  []string        // names that are still to be looked up
	found map[*mesh.Service]bool
	rules map[string]ruledHost
}

func (rd *reader) findContenders(key contendersKey) *contenders {
	c := &contention{
		reader: rd, scope: key.scope, namespace: rd.forDomain(key.scope.domain).namespace, port: key.port,
		names: map[string]bool{}, found: map[*mesh.Service]bool{}, rules: map[string]ruledHost{},
	}
	if key.host == "" {
		c.wildcards()
	} else {
		c.want(nameOf(key.host, ""))
	}
	for len(c.next) > 0 && len(c.names) <= maxContenders {
		name := c.next[0]
		c.next = c.next[1:]
		c.lookUp(name)
	}
	if len(c.names) > maxContenders {
		return nil
	}
	return &contenders{rd.inServiceOrder(key.scope, c.found), c.rules}
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
	for _, svc := range c.egressFor(c.scope, c.namespace) {
		c.service(svc, "")
	}
	for part := range c.undeclaredParts(c.scope, func(g ruledGroup) bool { return g.wild }) {
		for _, host := range slices.Concat(part.hosts, part.first) {
			c.rule(host)
		}
	}
}

// lookUp adds the services and rules that want a name.
func (c *contention) lookUp(name string) {
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
		if slices.ContainsFunc(c.virtualByHost.under(c.reader, host), func(vs *virtualService) bool { return vs.routesSidecars() != nil }) {
			c.rule(host)
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
