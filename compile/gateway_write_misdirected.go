package compile

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// tableNames says which names the tables of a listener need so that a request gets no
// further than the server that its connection chose. A client chooses the server by
// the name that it sends in TLS, and may then ask for another host on the same
// connection. That host may belong to a server that asks for more of its clients.
//
// The names of all servers form a tree, because a name is under each wildcard that
// covers it. A table lists only the names at its borders: those of other servers
// directly under its own, and its own directly under those of others. So each name
// is in two tables at most, however many servers there are.
type tableNames struct {
	listener *edgeListener
	passed   map[string]*edgeRoute   // names whose TLS is passed through
	others   map[*edgeGroup][]string // names of others directly under those of the group
	own      map[*edgeGroup][]string // names of the group that are under no other name of it
}

// tableNames returns the names for the tables of a listener. It returns nil if all
// connections come to the same server.
func (c *writer) tableNames(listener *edgeListener) *tableNames {
	if len(listener.groups) < 2 {
		return nil
	}
	out := &tableNames{listener: listener, passed: listener.passedNames(c.fits), others: map[*edgeGroup][]string{}, own: map[*edgeGroup][]string{}}
	for _, name := range slices.Sorted(maps.Keys(listener.owners)) {
		owner, around := listener.owners[name], out.around(name)
		if around != owner {
			out.own[owner] = append(out.own[owner], name)
			out.others[around] = append(out.others[around], name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(out.passed)) {
		if listener.owners[name] == nil {
			around := out.around(name)
			out.others[around] = append(out.others[around], name)
		}
	}
	return out
}

// around returns the group with the most precise wildcard around a name. It returns
// nil if there is none, or if connections for that wildcard are passed through.
func (n *tableNames) around(name string) *edgeGroup {
	for wildcard := range wildcards(strings.TrimPrefix(name, "*")) {
		switch owner := n.listener.owners[wildcard]; {
		case wildcard == name:
		case owner != nil:
			return owner
		case n.passed[wildcard] != nil:
			return nil
		}
	}
	return nil
}

// passedOn reports whether connections for a host are passed through, so that no
// client may ask for it where TLS ends.
func (n *tableNames) passedOn(host string) bool {
	if n == nil {
		return false
	}
	key := strings.ToLower(host)
	route, name := passedBy(n.passed, key)
	_, by := n.listener.ownerOf(key)
	return route != nil && precision(by) < precision(name)
}

// keepNames gives the names of a group to the hosts that it serves, by domain, and not to
// those of other groups in the table. It returns names without routes.
func (t *edgeTable) keepNames(group *edgeGroup, served map[string]*ir.VirtualHost, names *tableNames) (unserved []string) {
	if names == nil {
		return nil
	}
	for _, name := range names.own[group] {
		if host := nearest(served, name); host == nil {
			unserved = append(unserved, t.bothForms(name)...)
		} else if served[name] == nil {
			host.Domains = append(host.Domains, t.bothForms(name)...)
		}
	}
	return unserved
}

// refuseOthers answers requests for names of servers that ask for something else with 421,
// so that clients repeat them on a connection of their own.
func (t *edgeTable) refuseOthers(groups []*edgeGroup, names *tableNames) {
	if names == nil {
		return
	}
	isHere := func(owner *edgeGroup) bool { return slices.Contains(groups, owner) }
	var others []string
	for _, group := range groups {
		for _, name := range names.others[group] {
			if !isHere(names.listener.owners[name]) {
				others = append(others, t.bothForms(name)...)
			}
		}
	}
	if !isHere(names.listener.owners["*"]) {
		others = append(others, "*")
	}
	if len(others) > 0 {
		host := t.host("misdirected|"+strconv.Itoa(t.port), groups[0].ref(), others)
		host.Routes = []*ir.Route{{Response: ir.Misdirected(), Origins: []diag.Ref{groups[0].ref()}}}
	}
}

// nearest returns the virtual host of a name, or of the most precise wildcard around
// it.
func nearest(hosts map[string]*ir.VirtualHost, name string) *ir.VirtualHost {
	if host := hosts[name]; host != nil {
		return host
	}
	for wildcard := range wildcards(strings.TrimPrefix(name, "*")) {
		if host := hosts[wildcard]; host != nil {
			return host
		}
	}
	return nil
}

// bothForms returns the domains of a name, with the port and without.
func (t *edgeTable) bothForms(name string) []string {
	return []string{net.JoinHostPort(name, strconv.Itoa(t.port)), name}
}
