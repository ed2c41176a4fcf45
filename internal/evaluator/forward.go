package evaluator

import "net/http"

// take fills in what a route does to a request that it matches.
func (h *HTTP) take(route *Route, r Request, out *Outcome) {
	out.Operation = route.Operation
	if h.CORS {
		out.CORS = route.CORS
	}
	if route.Redirect != nil {
		out.Status, out.Location = http.StatusMovedPermanently, route.Redirect.location(r)
		return
	}
	out.Status = 0
	out.Host, out.Path = r.Host, route.rewritten(r)
	if route.HostRewrite != "" {
		out.Host = route.HostRewrite
	}
	out.Shares = h.shares(route, r)
	out.Add, out.Timeout, out.Retry = route.Add, route.Timeout, route.Retry
	out.Mirror, out.WebSocket = route.Mirror, route.WebSocket
}

func (to *Redirect) location(r Request) string {
	host, path := r.Host, r.Path
	if to.Host != "" {
		host = to.Host
	}
	if to.Path != "" {
		path = to.Path
		if _, query := r.bare(); to.KeepQuery {
			path += query
		}
	}
	return "http://" + host + path
}

// rewritten replaces what matched: the prefix, or the whole path but the query.
func (route *Route) rewritten(r Request) string {
	switch {
	case route.PrefixRewrite == "":
		return r.Path
	case route.Path.Kind == Prefix:
		return route.PrefixRewrite + r.Path[len(route.Path.Text):]
	default:
		_, query := r.bare()
		return route.PrefixRewrite + query
	}
}

// shares leaves out clusters that get nothing.
func (h *HTTP) shares(route *Route, r Request) []Share {
	total := 0
	for _, w := range route.Weights {
		total += w.Weight
	}
	var out []Share
	for _, w := range route.Weights {
		if w.Weight > 0 {
			out = append(out, Share{
				Cluster: w.Cluster, Percent: 100 * float64(w.Weight) / float64(total),
				Faults: h.faults(route, w.Cluster, r),
			})
		}
	}
	return out
}

// faults of a request that goes to the cluster, in the order they are drawn.
func (h *HTTP) faults(route *Route, cluster string, r Request) []Fault {
	var out []Fault
	for _, f := range h.Faults {
		if (f.Cluster == "" || f.Cluster == cluster) && headersMatch(f.Headers, r) && !f.Fault.idle() {
			out = append(out, f.Fault)
		}
	}
	if h.RouteFaults && route.Fault != nil && !route.Fault.idle() {
		out = append(out, *route.Fault)
	}
	return out
}
