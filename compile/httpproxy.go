package compile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// ProxyTable is the name of the one route table behind the HTTP proxy port.
const ProxyTable = "http_proxy"

// httpProxy opens the port for workloads that are configured to use a proxy.
func (c *writer) httpProxy() {
	http := c.http(ProxyTable)
	http.ForwardProxy = true
	http.AbsoluteURLs = !c.plan.pilot().ProxyPortBare
	c.listen(&ir.Listener{
		IP: "127.0.0.1", Port: c.plan.settings.ProxyHTTPPort,
		Bind: true, Direction: ir.Outbound, HTTP: http,
	})
}

// Combined returns all tables of ports merged into one, named ProxyTable. It keeps only
// domains with a port, except at port 80, because a URL without a port means port 80.
// Routes are shared with the tables. The merged table of an ingress may have two virtual
// hosts with the same name: Pilot returned such tables to any client, but Envoy rejects
// them.
func Combined(ports []*ir.RouteTable) *ir.RouteTable {
	all := &ir.RouteTable{Name: ProxyTable}
	for _, table := range ports {
		for _, host := range table.VirtualHosts {
			if host = atProxyPort(host, table.Name); host != nil {
				all.VirtualHosts = append(all.VirtualHosts, host)
			}
		}
	}
	sortByName(all)
	return all
}

func sortByName(t *ir.RouteTable) {
	byName := func(a, b *ir.VirtualHost) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(t.VirtualHosts, byName) {
		slices.SortStableFunc(t.VirtualHosts, byName)
	}
}

// atProxyPort returns a virtual host with only those of its domains that contain
// its port, or nil if there are none.
func atProxyPort(host *ir.VirtualHost, port string) *ir.VirtualHost {
	if port == "80" {
		return host
	}
	narrowed := *host
	narrowed.Domains = slices.DeleteFunc(slices.Clone(host.Domains), func(domain string) bool {
		return !strings.HasSuffix(domain, ":"+port)
	})
	if len(narrowed.Domains) == 0 {
		return nil
	}
	return &narrowed
}
