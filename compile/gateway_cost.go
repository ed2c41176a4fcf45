package compile

import "strings"

// serverCounts are numbers of hosts of servers, by what becomes of connections there.
type serverCounts struct{ http, redirecting, tcp, passthrough int }

func (c *serverCounts) add(other serverCounts) {
	c.http += other.http
	c.redirecting += other.redirecting
	c.tcp += other.tcp
	c.passthrough += other.passthrough
}

func (c serverCounts) sum() int { return c.http + c.redirecting + c.tcp + c.passthrough }

// gatewaySize is how many servers a Gateway has, as far as it says.
type gatewaySize struct {
	hosts            map[gatewayHost]serverCounts
	tcp, passthrough map[int]int // servers by port
}

func (g *gateway) measure() gatewaySize {
	out := gatewaySize{hosts: map[gatewayHost]serverCounts{}, tcp: map[int]int{}, passthrough: map[int]int{}}
	for _, s := range g.servers {
		var one serverCounts
		switch {
		case s.kind == tcpServer:
			one.tcp = 1
			out.tcp[s.port]++
		case s.kind == passthroughServer:
			one.passthrough = 1
			out.passthrough[s.port]++
		case s.toHTTPS:
			one.redirecting = 1
		default:
			one.http = 1
		}
		for _, host := range s.hosts {
			all := out.hosts[host]
			all.add(one)
			out.hosts[host] = all
		}
	}
	return out
}

// wanted is at how many hosts of its servers a VirtualService of a namespace wants one
// of its hosts.
func (g *gateway) wanted(host, namespace string) serverCounts {
	var out serverCounts
	for text := range textsFor(host) {
		out.add(g.gatewaySize.hosts[gatewayHost{"*", text}])
		out.add(g.gatewaySize.hosts[gatewayHost{namespace, text}])
	}
	return out
}

// textsFor are the texts that may stand for a host at a server: the same, or a leading
// wildcard and any ending.
func textsFor(host string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		key := strings.ToLower(host)
		if !strings.HasPrefix(key, "*") && !yield(key) {
			return
		}
		wildcards(key)(yield)
	}
}
