package evaluator

import (
	"net/http"
	"strings"
)

// Evaluate returns what the proxy does with the request.
func (p *Proxy) Evaluate(r Request) Outcome {
	l := p.listener(r)
	if l == nil {
		return Outcome{}
	}
	out := Outcome{Listener: l.Name}
	if l.HTTP != nil {
		l.HTTP.evaluate(r, &out)
		return out
	}
	switch chain, ok := l.chain(r); {
	case ok && chain.HTTP != nil:
		chain.HTTP.evaluate(r, &out)
	case ok:
		out.TCP, out.Shares = true, chain.Shares
	case l.UseOriginalDst:
		return Outcome{} // Envoy closes what it cannot hand off.
	}
	return out
}

// authority returns the authority that selects the virtual host.
func (h *HTTP) authority(r Request) string {
	whole := strings.ToLower(r.Host)
	if at := strings.LastIndex(whole, ":"); h.IgnorePort && at > strings.LastIndex(whole, "]") {
		return whole[:at]
	}
	return whole
}

// stripDot removes one dot at the end of a host or before its port, as Envoy does.
func stripDot(host string) string {
	bare, port, hasPort := strings.Cut(host, ".:")
	if hasPort && !strings.Contains(port, ".") {
		return bare + ":" + port
	}
	return strings.TrimSuffix(host, ".")
}

func (h *HTTP) evaluate(r Request, out *Outcome) {
	out.Status = http.StatusNotFound
	if r.AbsoluteForm && !h.AbsoluteURLs || !strings.HasPrefix(r.Path, "/") {
		return
	}
	if h.StripDot {
		r.Host = stripDot(r.Host)
	}
	if h.Hosts != nil && !h.Hosts.MatchString(r.Host) {
		out.Status, out.Body = http.StatusForbidden, "RBAC: access denied"
		return
	}
	host := chooseHost(h.VirtualHosts, h.authority(r))
	if host == nil {
		return
	}
	out.VirtualHost = host.Name
	for _, route := range host.Routes {
		if route.matches(r) {
			h.take(route, r, out)
			return
		}
	}
}
