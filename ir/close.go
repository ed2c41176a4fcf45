package ir

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pilot-api/pilot-api/diag"
)

// Close returns a copy of the configuration in which every part that breaks a
// promise of this package fails closed, with one problem for each such part. A
// cluster loses its endpoints and a route answers 503. An invalid domain, listener
// or TCP destination is left out. So a bad object affects only its own parts, and
// the result is the same on every replica. The result shares valid parts with c,
// does not change c, and passes Validate.
func Close(c *Config) (*Config, diag.List) {
	k := &closer{}
	out := *c
	names := map[string]bool{}
	out.Clusters = each(c.Clusters, func(c *Cluster) *Cluster { return k.named(names, c) })
	k.clusters = func(name string) bool { return names[name] }
	tables := map[string]bool{}
	out.RouteTables = each(c.RouteTables, func(t *RouteTable) *RouteTable { return k.namedTable(tables, t) })
	k.tables = func(name string) bool { return tables[name] }
	out.Listeners = each(c.Listeners, k.listener)
	return &out, k.problems.List()
}

// CloseCluster is Close for one cluster.
func CloseCluster(c *Cluster) (*Cluster, diag.List) {
	k := &closer{}
	sound := k.cluster(c)
	return sound, k.problems.List()
}

// CloseTable is Close for a route table. clusters are the clusters it may lead to,
// by name.
func CloseTable(t *RouteTable, clusters map[string]*Cluster) (*RouteTable, diag.List) {
	k := &closer{clusters: func(name string) bool { return clusters[name] != nil }}
	sound := k.table("route table "+t.Name, t)
	return sound, k.problems.List()
}

// CloseHost is Close for the routes of a virtual host of a table that CloseDomains
// has checked. clusters are the clusters it may lead to, by name.
func CloseHost(h *VirtualHost, clusters map[string]*Cluster) (*VirtualHost, diag.List) {
	k := &closer{clusters: func(name string) bool { return clusters[name] != nil }}
	out := *h
	if out.Routes = k.routes("virtual host "+h.Name, h); sameSlice(out.Routes, h.Routes) {
		return h, nil
	}
	return &out, k.problems.List()
}

// CloseDomains is Close for the names and domains of a table's virtual hosts. The
// result has one entry for each virtual host: a copy with its valid domains, or nil
// if there are none.
func CloseDomains(t *RouteTable) ([]*VirtualHost, diag.List) {
	k := &closer{}
	names, domains := map[string]bool{}, map[string]bool{}
	out := make([]*VirtualHost, len(t.VirtualHosts))
	for i, h := range t.VirtualHosts {
		out[i] = k.host("route table "+t.Name, h, names, domains)
	}
	return out, k.problems.List()
}

// CloseListeners is Close for listeners of a configuration whose clusters and route
// tables are complete and sorted by name.
func CloseListeners(listeners []*Listener, c *Config) ([]*Listener, diag.List) {
	k := &closer{
		clusters: func(name string) bool {
			_, ok := slices.BinarySearchFunc(c.Clusters, name, func(c *Cluster, name string) int { return strings.Compare(c.Name, name) })
			return ok
		},
		tables: func(name string) bool {
			return slices.ContainsFunc(c.RouteTables, func(t *RouteTable) bool { return t.Name == name })
		},
	}
	sound := each(listeners, k.listener)
	return sound, k.problems.List()
}

// closer collects problems, and knows the names that parts may refer to.
type closer struct {
	clusters, tables func(name string) bool
	problems         diag.Collector
}

// closing reports what is wrong with a part and what is done about it.
func (k *closer) closing(origins []diag.Ref, part string, wrong error, outcome string) {
	k.problems.Add(diag.Warn(diag.NotHonoured, origins, "%s: %v; %s", part, wrong, outcome).Coded(diag.Contradicts)...)
}

const leftOut = "it is left out"

// each returns the results of sound for all entries of the list, without nil
// results. It returns the list itself if no entry changed.
func each[T any](list []*T, sound func(*T) *T) []*T {
	var out []*T
	changed := false
	for i, entry := range list {
		s := sound(entry)
		if s != entry && !changed {
			out, changed = slices.Clone(list[:i]), true
		}
		if changed && s != nil {
			out = append(out, s)
		}
	}
	if !changed {
		return list
	}
	return out
}

// claim reserves a unique name.
func claim(taken map[string]bool, name string) error {
	switch {
	case name == "":
		return errNoName
	case taken[name]:
		return errTaken
	}
	taken[name] = true
	return nil
}

func (k *closer) named(taken map[string]bool, c *Cluster) *Cluster {
	if err := claim(taken, c.Name); err != nil {
		k.closing(c.Origins, "cluster "+c.Name, err, leftOut)
		return nil
	}
	return k.cluster(c)
}

func (k *closer) cluster(c *Cluster) *Cluster {
	if err := checkCluster(c); err != nil {
		k.closing(c.Origins, "cluster "+c.Name, err, "it has no endpoints")
		return c.Closed()
	}
	return c
}

func (k *closer) namedTable(taken map[string]bool, t *RouteTable) *RouteTable {
	if err := claim(taken, t.Name); err != nil {
		k.closing(nil, "route table "+t.Name, err, leftOut)
		return nil
	}
	return k.table("route table "+t.Name, t)
}

func (k *closer) table(at string, t *RouteTable) *RouteTable {
	names, domains := map[string]bool{}, map[string]bool{}
	hosts := each(t.VirtualHosts, func(h *VirtualHost) *VirtualHost { return k.host(at, h, names, domains) })
	if sameSlice(hosts, t.VirtualHosts) {
		return t
	}
	out := *t
	out.VirtualHosts = hosts
	return &out
}

// host keeps the valid domains of a virtual host, and gives it a unique name.
func (k *closer) host(at string, h *VirtualHost, names, domains map[string]bool) *VirtualHost {
	at += ": virtual host " + h.Name
	out := *h
	out.Domains = nil
	for _, d := range h.Domains {
		if err := checkDomain(d, domains); err != nil {
			k.closing(h.origins(), fmt.Sprintf("%s: domain %s", at, d), err, leftOut)
			continue
		}
		out.Domains = append(out.Domains, d)
	}
	if len(out.Domains) == 0 {
		k.closing(h.origins(), at, errNoDomain, leftOut)
		return nil
	}
	for err := claim(names, out.Name); err != nil; err = claim(names, out.Name) {
		k.closing(h.origins(), at, err, "it is called "+out.Name+"#")
		out.Name += "#"
	}
	out.Routes = k.routes(at, h)
	if out.Name == h.Name && len(out.Domains) == len(h.Domains) && sameSlice(out.Routes, h.Routes) {
		return h
	}
	return &out
}

func (k *closer) routes(at string, h *VirtualHost) []*Route {
	i := 0
	return each(h.Routes, func(r *Route) *Route {
		i++
		return k.route(func() string { return fmt.Sprintf("%s: route %d", at, i-1) }, r)
	})
}

// checkDomain checks and reserves the domain. Envoy compares domains without case,
// and reads them as the value of a header.
func checkDomain(d string, taken map[string]bool) error {
	if strings.ContainsFunc(d, unicode.IsControl) {
		return errControl
	}
	if last := strings.LastIndexByte(d, '.'); last >= 0 && (last == len(d)-1 || d[last+1] == ':') {
		return errFinalDot
	}
	return claim(taken, strings.ToLower(d))
}

// origins returns the origins of the first route.
func (h *VirtualHost) origins() []diag.Ref {
	if len(h.Routes) == 0 {
		return nil
	}
	return h.Routes[0].Origins
}

func (k *closer) route(at func() string, r *Route) *Route {
	err := k.checkRoute(r)
	match, unmatched := closeMatch(r.Match)
	if err == nil {
		err = unmatched
	}
	switch {
	case err == nil:
		return r
	case r.Optional:
		k.closing(r.Origins, at(), err, leftOut)
		return nil
	}
	k.closing(r.Origins, at(), err, "it answers 503")
	return r.Closed(match)
}

func (k *closer) listener(l *Listener) *Listener {
	at := "listener " + l.Address()
	if err := k.checkListener(l); err != nil {
		k.closing(l.Origins, at, err, leftOut)
		return nil
	}
	out := *l
	out.HTTP, out.TCP = k.inline(at, l.HTTP), k.tcp(at, l.Origins, l.TCP)
	out.Chains = each(l.Chains, func(c *FilterChain) *FilterChain { return k.chain(at, c) })
	switch {
	case out.HTTP == l.HTTP && out.TCP == l.TCP && sameSlice(out.Chains, l.Chains):
		return l
	case len(l.Chains) > 0 && len(out.Chains) == 0:
		return nil
	}
	return &out
}

// inline returns the listener with its inline table closed where necessary.
func (k *closer) inline(at string, h *HTTPListener) *HTTPListener {
	if h == nil || h.Inline == nil {
		return h
	}
	table := k.table(at, h.Inline)
	if table == h.Inline {
		return h
	}
	out := *h
	out.Inline = table
	return &out
}

// chain returns nil for a chain that takes no connection.
func (k *closer) chain(at string, c *FilterChain) *FilterChain {
	if err := k.checkChain(c); err != nil {
		k.closing(c.Origins, at+": filter chain", err, leftOut)
		return nil
	}
	names := k.sound(at, c.Origins, c.ServerNames, checkServerName)
	if len(names) == 0 && len(c.ServerNames) > 0 {
		return nil
	}
	http, tcp := k.inline(at, c.HTTP), k.tcp(at, c.Origins, c.TCP)
	if len(names) == len(c.ServerNames) && http == c.HTTP && tcp == c.TCP {
		return c
	}
	out := *c
	out.ServerNames, out.HTTP, out.TCP = names, http, tcp
	return &out
}

// tcp leaves out destinations that no connection can have, and names that no client
// can ask for. A route whose destinations or names are all invalid takes nothing.
func (k *closer) tcp(at string, origins []diag.Ref, t *TCPListener) *TCPListener {
	if t == nil {
		return nil
	}
	var routes []TCPRoute
	same := true
	for _, r := range t.Routes {
		out := r
		out.Destinations = k.sound(at, origins, r.Destinations, func(d string) error {
			_, err := ParseDestination(d)
			return err
		})
		out.ServerNames = k.sound(at, origins, r.ServerNames, checkServerName)
		if len(out.Destinations) == len(r.Destinations) && len(out.ServerNames) == len(r.ServerNames) {
			routes = append(routes, r)
			continue
		}
		same = false
		if (len(out.Destinations) > 0 || len(r.Destinations) == 0) && (len(out.ServerNames) > 0 || len(r.ServerNames) == 0) {
			routes = append(routes, out)
		}
	}
	if same {
		return t
	}
	out := *t
	out.Routes = routes
	return &out
}

// sound returns the valid texts.
func (k *closer) sound(at string, origins []diag.Ref, texts []string, check func(string) error) []string {
	var out []string
	for _, text := range texts {
		if err := check(text); err != nil {
			k.closing(origins, at, err, leftOut)
			continue
		}
		out = append(out, text)
	}
	return out
}

// checkServerName accepts a name, or a name that begins with "*." in place of whole
// labels.
func checkServerName(name string) error {
	rest := strings.TrimPrefix(name, "*.")
	if rest == "" || strings.ContainsFunc(rest, func(r rune) bool { return r == '*' || unicode.IsControl(r) }) {
		return fmt.Errorf("server name must be one such as a.example.com or *.example.com, found %q", name)
	}
	return nil
}

// sameSlice reports whether a and b are the same slice.
func sameSlice[T any](a, b []*T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
