package ir

import "github.com/pilot-api/pilot-api/diag"

// EachOrigin calls visit with the objects that the parts of a configuration came
// from, once for each part that names the object.
func (c *Config) EachOrigin(visit func(diag.Ref)) {
	eachOf(c.Origins, visit)
	for _, cluster := range c.Clusters {
		cluster.EachOrigin(visit)
	}
	for _, t := range c.RouteTables {
		t.eachOrigin(visit)
	}
	for _, l := range c.Listeners {
		l.EachOrigin(visit)
	}
	for _, s := range c.Secrets {
		eachOf(s.Origins, visit)
	}
}

// EachOrigin calls visit with the objects that a cluster came from.
func (c *Cluster) EachOrigin(visit func(diag.Ref)) { eachOf(c.Origins, visit) }

// EachOrigin calls visit with the objects that the parts of a listener came from.
func (l *Listener) EachOrigin(visit func(diag.Ref)) {
	eachOf(l.Origins, visit)
	l.HTTP.eachOrigin(visit)
	l.TCP.eachOrigin(visit)
	for _, chain := range l.Chains {
		chain.eachOrigin(visit)
	}
}

// EachHTTP calls visit with what the listener and its chains do with HTTP.
func (l *Listener) EachHTTP(visit func(*HTTPListener)) {
	if l.HTTP != nil {
		visit(l.HTTP)
	}
	for _, chain := range l.Chains {
		if chain.HTTP != nil {
			visit(chain.HTTP)
		}
	}
}

// EachTCP calls visit with what the listener and its chains do with connections.
func (l *Listener) EachTCP(visit func(*TCPListener)) {
	if l.TCP != nil {
		visit(l.TCP)
	}
	for _, chain := range l.Chains {
		if chain.TCP != nil {
			visit(chain.TCP)
		}
	}
}

// EachTCPRoute calls visit with the TCP routes of the listener and of its chains.
func (l *Listener) EachTCPRoute(visit func(TCPRoute)) {
	all := []*TCPListener{l.TCP}
	for _, chain := range l.Chains {
		all = append(all, chain.TCP)
	}
	for _, t := range all {
		if t == nil {
			continue
		}
		for _, r := range t.Routes {
			visit(r)
		}
	}
}

func (c *FilterChain) eachOrigin(visit func(diag.Ref)) {
	eachOf(c.Origins, visit)
	c.HTTP.eachOrigin(visit)
	c.TCP.eachOrigin(visit)
}

func (h *HTTPListener) eachOrigin(visit func(diag.Ref)) {
	if h != nil && h.Inline != nil {
		h.Inline.eachOrigin(visit)
	}
}

func (t *TCPListener) eachOrigin(visit func(diag.Ref)) {
	if t == nil {
		return
	}
	for _, r := range t.Routes {
		eachOf(r.Origins, visit)
	}
}

func (t *RouteTable) eachOrigin(visit func(diag.Ref)) {
	for _, h := range t.VirtualHosts {
		h.EachOrigin(visit)
	}
}

// EachOrigin calls visit with the objects that the routes of a virtual host came
// from.
func (h *VirtualHost) EachOrigin(visit func(diag.Ref)) {
	for _, r := range h.Routes {
		eachOf(r.Origins, visit)
	}
}

func eachOf(origins []diag.Ref, visit func(diag.Ref)) {
	for _, o := range origins {
		visit(o)
	}
}

// EachCluster calls visit with the names of the clusters that the route leads to,
// mirrors included.
func (r *Route) EachCluster(visit func(name string)) {
	for _, w := range r.Clusters {
		visit(w.Name)
	}
	for _, m := range r.Mirrors {
		visit(m.Cluster)
	}
}
