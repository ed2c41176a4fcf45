package evaluator

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// reader collects what an Envoy would refuse in a configuration, and what this package
// cannot read.
type reader struct {
	proxy Proxy
	errs  []error
}

func (r *reader) fail(at, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

// require calls fail unless ok.
func (r *reader) require(ok bool, at, format string, args ...any) {
	if !ok {
		r.fail(at, format, args...)
	}
}

// result returns the Proxy if nothing was wrong.
func (r *reader) result() (*Proxy, error) {
	r.listenerNames()
	for _, l := range r.proxy.Listeners {
		for _, c := range l.Chains {
			for _, share := range c.Shares {
				r.known(l.Name, share.Cluster)
			}
		}
		for _, http := range l.everyHTTP() {
			r.domains(l.Name, http)
			for _, h := range http.VirtualHosts {
				r.routes(l.Name+": "+h.Name, h.Routes)
			}
		}
	}
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	return &r.proxy, nil
}

func (r *reader) listenerNames() {
	names, addresses := map[string]bool{}, map[netip.AddrPort]bool{}
	for _, l := range r.proxy.Listeners {
		r.require(l.Name != "" && !names[l.Name], "listener "+l.Name, "must have a name of its own")
		r.require(!addresses[l.Address], "listener "+l.Name, "must have an address of its own, found %s again", l.Address)
		names[l.Name], addresses[l.Address] = true, true
	}
}

// everyHTTP returns the HTTP of the listener or of its chains.
func (l *Listener) everyHTTP() []*HTTP {
	var out []*HTTP
	if l.HTTP != nil {
		out = append(out, l.HTTP)
	}
	for _, c := range l.Chains {
		if c.HTTP != nil && !slices.Contains(out, c.HTTP) {
			out = append(out, c.HTTP)
		}
	}
	return out
}

func (r *reader) domains(listener string, http *HTTP) {
	hosts, domains := map[string]bool{}, map[string]bool{}
	for _, h := range http.VirtualHosts {
		r.require(h.Name != "" && !hosts[h.Name], listener, "virtual host must have a name of its own, found %q", h.Name)
		r.require(len(h.Domains) > 0, listener, "virtual host %s must have a domain", h.Name)
		hosts[h.Name] = true
		for i, d := range h.Domains {
			h.Domains[i] = strings.ToLower(d)
			r.require(!domains[h.Domains[i]], listener, "domain %s must occur only once", d)
			domains[h.Domains[i]] = true
		}
	}
}

// routes checks that the clusters exist. v3 would answer 503 for missing ones.
func (r *reader) routes(at string, routes []*Route) {
	for _, route := range routes {
		sum := 0
		for _, w := range route.Weights {
			r.known(at, w.Cluster)
			sum += w.Weight
		}
		for _, m := range route.Mirrors {
			r.known(at, m.Cluster)
		}
		answers := route.Redirect != nil || route.Response != nil
		r.require(answers == (len(route.Weights) == 0), at, "a route must redirect, answer or go to clusters")
		r.require(answers || sum > 0, at, "weights must not sum to 0")
	}
}

func (r *reader) known(at, cluster string) {
	r.require(r.proxy.Clusters[cluster] != nil, at, "cluster %s is not among the clusters", cluster)
}

func (r *reader) addCluster(c *Cluster) {
	r.require(c.Name != "" && r.proxy.Clusters[c.Name] == nil, "cluster "+c.Name, "must have a name of its own")
	if c.Discovery != Original && len(c.Endpoints) == 0 {
		c.Discovery = Fixed
	}
	slices.SortFunc(c.Endpoints, func(a, b Endpoint) int { return strings.Compare(a.Address, b.Address) })
	if r.proxy.Clusters == nil {
		r.proxy.Clusters = map[string]*Cluster{}
	}
	r.proxy.Clusters[c.Name] = c
}

// regex compiles an expression that matches the whole value.
func (r *reader) regex(at, text string) *regexp.Regexp {
	re, err := regexp.Compile(`^(?:` + text + `)$`)
	if err != nil {
		r.fail(at, "%v", err)
	}
	return re
}

// substitution returns the expression and the replacement in Go's syntax: \\1 becomes
// ${1}.
func (r *reader) substitution(at, match, text string) (*regexp.Regexp, string) {
	re, err := regexp.Compile(match)
	if err != nil {
		r.fail(at, "%v", err)
	}
	text = strings.ReplaceAll(text, "$", "$$")
	return re, backReference.ReplaceAllString(text, "$${$1}")
}

var backReference = regexp.MustCompile(`\\([0-9])`)

func (r *reader) addrPort(at, text string) netip.AddrPort {
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		r.fail(at, "%v", err)
	}
	return address
}

// literal returns a header value without the signs that escape percent signs.
func (r *reader) literal(at, value string) string {
	plain := strings.ReplaceAll(value, "%%", "")
	r.require(!strings.Contains(plain, "%"), at, "value %q has a variable, which is not known here", value)
	return strings.ReplaceAll(value, "%%", "%")
}

// errorLimit returns how many consecutive errors eject an endpoint. With enforcement at
// 0 percent none do.
func (r *reader) errorLimit(at string, errors, percent int) int {
	r.require(percent == 0 || percent == 100, at, "an ejection by chance is not known here")
	if percent == 0 {
		return 0
	}
	return errors
}
