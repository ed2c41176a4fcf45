package compile

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// httpProxyTable is the name of the one table behind the HTTP proxy port.
const httpProxyTable = "http_proxy"

// httpProxy opens the port for workloads that are told to use a proxy. All
// ports share one table there, so a domain must say its port, but for 80,
// which a URL without a port means.
func (c *compiler) httpProxy() {
	all := &ir.RouteTable{Name: httpProxyTable}
	for _, port := range slices.Sorted(maps.Keys(c.tables)) {
		for _, host := range c.tables[port].virtualHosts() {
			if port != 80 {
				host = withPortOnly(host, port)
			}
			if len(host.Domains) > 0 {
				all.VirtualHosts = append(all.VirtualHosts, host)
			}
		}
	}
	slices.SortFunc(all.VirtualHosts, func(a, b *ir.VirtualHost) int { return cmp.Compare(a.Name, b.Name) })
	c.config.RouteTables = append(c.config.RouteTables, all)
	http := c.http(httpProxyTable)
	http.ForwardProxy = true
	http.AbsoluteURLs = !c.plan.pilot().ProxyPortBare
	c.listen(&ir.Listener{
		IP: "127.0.0.1", Port: c.snap.Settings.ProxyHTTPPort,
		Bind: true, Direction: ir.Outbound, HTTP: http,
	})
}

func withPortOnly(host *ir.VirtualHost, port int) *ir.VirtualHost {
	suffix := ":" + strconv.Itoa(port)
	narrowed := *host
	narrowed.Domains = slices.DeleteFunc(slices.Clone(host.Domains), func(domain string) bool {
		return !strings.HasSuffix(domain, suffix)
	})
	return &narrowed
}
