package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// edgeTable is the route table of one port of an edge proxy while its virtual hosts
// are collected.
type edgeTable struct {
	port     int
	hosts    map[string]*ir.VirtualHost // by name
	owners   map[string]diag.Ref        // by domain in lower case
	dotKept  bool                       // of all hosts
	problems diag.List
}

func newEdgeTable(port int) *edgeTable {
	return &edgeTable{port: port, hosts: map[string]*ir.VirtualHost{}, owners: map[string]diag.Ref{}}
}

// host returns a virtual host by name, with those of its domains that no other host
// has.
func (t *edgeTable) host(name string, ref diag.Ref, domains []string) *ir.VirtualHost {
	if known := t.hosts[name]; known != nil {
		return known
	}
	out := &ir.VirtualHost{Name: name, DotKept: t.dotKept}
	t.hosts[name] = out
	for _, domain := range domains {
		key := strings.ToLower(domain) // Envoy ignores case.
		if first, taken := t.owners[key]; taken {
			t.problems = append(t.problems, diag.Problem{
				Severity: diag.Warning, Reason: diag.Conflict, Code: diag.GatewayClaimed, Object: ref, Value: fmt.Sprintf("%q", domain),
				Message: fmt.Sprintf("requests to this host at port %d follow %s, which comes first", t.port, first),
			})
			continue
		}
		t.owners[key] = ref
		out.Domains = append(out.Domains, domain)
	}
	return out
}

// routeTable returns the table of the hosts that have a domain.
func (t *edgeTable) routeTable() *ir.RouteTable {
	out := &ir.RouteTable{Name: strconv.Itoa(t.port)}
	for _, host := range t.hosts {
		if len(host.Domains) > 0 {
			out.VirtualHosts = append(out.VirtualHosts, host)
		}
	}
	slices.SortFunc(out.VirtualHosts, func(a, b *ir.VirtualHost) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
