package evaluator

import (
	"fmt"
	"strings"
)

// take sets the outcome of a request that matches a route.
func (h *HTTP) take(route *Route, r Request, out *Outcome) {
	out.Operation = route.Operation
	if h.CORS {
		out.CORS = route.CORS
	}
	out.Change = route.Change
	if route.Redirect != nil {
		out.Status, out.Location = route.Redirect.Code, route.Redirect.location(route.Path, r)
		return
	}
	if route.Response != nil {
		out.Status, out.Body = route.Response.Status, route.Response.Body
		return
	}
	out.Status = 0
	out.Host, out.Path = r.Host, route.rewritten(r)
	if route.HostRewrite != "" {
		out.Host = route.HostRewrite
	}
	out.Shares = h.shares(route, r)
	out.Timeout, out.Retry, out.HashHeader = route.Timeout, route.Retry, route.HashHeader
	out.Mirrors, out.WebSocket = route.Mirrors, h.WebSockets
	if route.WebSocket != nil {
		out.WebSocket = *route.WebSocket
	}
}

func (to *Redirect) location(match PathMatch, r Request) string {
	scheme, host, path := "http", r.Host, r.Path
	if to.Scheme != "" {
		scheme = to.Scheme
	}
	if to.Host != "" {
		host = to.Host
	}
	if to.Port != 0 {
		if at := strings.LastIndexByte(host, ':'); at >= 0 {
			host = host[:at]
		}
		host = fmt.Sprintf("%s:%d", host, to.Port)
	}
	if to.Prefix != "" {
		path = match.replaced(to.Prefix, r)
	}
	if to.Path != "" {
		path = to.Path
		if _, query := r.bare(); to.KeepQuery {
			path += query
		}
	}
	return scheme + "://" + host + path
}

// rewritten replaces what matched: the prefix, or the whole path without the query.
func (route *Route) rewritten(r Request) string {
	path, query := r.bare()
	switch {
	case route.RegexRewrite != nil:
		return route.RegexRewrite.ReplaceAllString(path, route.Substitution) + query
	case route.PrefixRewrite == "":
		return r.Path
	default:
		return route.Path.replaced(route.PrefixRewrite, r)
	}
}

// replaced returns the path with text in place of what matched.
func (m PathMatch) replaced(text string, r Request) string {
	if m.Kind == Prefix {
		return text + r.Path[len(m.Text):]
	}
	_, query := r.bare()
	return text + query
}

// shares returns the shares of the clusters, without those that get no requests.
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
				Faults: h.faults(route, w.Cluster, r), Host: w.Host, Change: w.Change,
			})
		}
	}
	return out
}

// faults returns the faults of a request to the cluster in the order of their draws.
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
