package evaluator

import (
	"net/http"
	"strings"
	"time"
)

type v1Table struct {
	ValidateClusters bool `json:"validate_clusters"`
	VirtualHosts     []struct {
		Name    string    `json:"name"`
		Domains []string  `json:"domains"`
		Routes  []v1Route `json:"routes"`
	} `json:"virtual_hosts"`
}

type v1Route struct {
	Prefix        string         `json:"prefix"`
	Path          string         `json:"path"`
	Regex         string         `json:"regex"`
	CaseSensitive *bool          `json:"case_sensitive"`
	Headers       []v1ValueMatch `json:"headers"`
	Query         []v1ValueMatch `json:"query_parameters"`

	PathRedirect  string `json:"path_redirect"`
	HostRedirect  string `json:"host_redirect"`
	PrefixRewrite string `json:"prefix_rewrite"`
	HostRewrite   string `json:"host_rewrite"`
	Cluster       string `json:"cluster"`
	Weighted      *struct {
		Clusters []struct {
			Name   string `json:"name"`
			Weight int    `json:"weight"`
		} `json:"clusters"`
	} `json:"weighted_clusters"`

	TimeoutMS *int64 `json:"timeout_ms"`
	Retry     *struct {
		On        string `json:"retry_on"`
		Attempts  *int   `json:"num_retries"`
		TimeoutMS int64  `json:"per_try_timeout_ms"`
	} `json:"retry_policy"`
	WebSocket bool `json:"use_websocket"`
	Shadow    struct {
		Cluster string `json:"cluster"`
	} `json:"shadow"`
	Add []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"request_headers_to_add"`
	CORS *v1CORS `json:"cors"`
	Hash struct {
		Header string `json:"header_name"`
	} `json:"hash_policy"`
	Decorator struct {
		Operation string `json:"operation"`
	} `json:"decorator"`
}

type v1CORS struct {
	Enabled     *bool    `json:"enabled"`
	Credentials bool     `json:"allow_credentials"`
	Methods     string   `json:"allow_methods"`
	Headers     string   `json:"allow_headers"`
	Expose      string   `json:"expose_headers"`
	MaxAge      string   `json:"max_age"`
	Origins     []string `json:"allow_origin"`
}

// routeTimeout is Envoy's default for a route.
const routeTimeout = 15 * time.Second

func (r *v1Reader) table(at string, t v1Table) []*VirtualHost {
	var out []*VirtualHost
	for _, h := range t.VirtualHosts {
		for _, d := range h.Domains {
			r.require(!strings.Contains(strings.TrimPrefix(d, "*"), "*"), at, "domain %s: v1 knows a star at the start only", d)
		}
		host := &VirtualHost{Name: h.Name, Domains: h.Domains}
		for _, route := range h.Routes {
			host.Routes = append(host.Routes, r.route(at+": "+h.Name, route))
		}
		out = append(out, host)
	}
	return out
}

func (r *v1Reader) route(at string, from v1Route) *Route {
	out := &Route{
		Operation:     from.Decorator.Operation,
		Path:          r.path(at, from),
		Headers:       r.headers(at, from.Headers),
		Timeout:       milliseconds(withDefault(from.TimeoutMS, routeTimeout.Milliseconds())),
		WebSocket:     &from.WebSocket,
		PrefixRewrite: from.PrefixRewrite, HostRewrite: from.HostRewrite,
		CORS: from.CORS.policy(), HashHeader: from.Hash.Header,
	}
	if from.Shadow.Cluster != "" {
		out.Mirrors = []Mirror{{from.Shadow.Cluster, allRequests}}
	}
	for _, q := range from.Query {
		out.Query = append(out.Query, QueryMatch{q.Name, r.value(at, q)})
	}
	if from.HostRedirect != "" || from.PathRedirect != "" {
		out.Redirect = &Redirect{Host: from.HostRedirect, Path: from.PathRedirect, Code: http.StatusMovedPermanently}
		r.require(!from.WebSocket, at, "a redirect must not be for websockets")
	}
	if p := from.Retry; p != nil {
		out.Retry = &Retry{On: p.On, Attempts: withDefault(p.Attempts, 1), PerTryTimeout: milliseconds(p.TimeoutMS)}
	}
	for _, h := range from.Add {
		out.Change.Add = append(out.Change.Add, Header{Name: h.Key, Value: r.literal(at, h.Value)})
	}
	r.clusters(at, from, out)
	return out
}

func (r *v1Reader) clusters(at string, from v1Route, out *Route) {
	r.require(from.Cluster == "" || from.Weighted == nil, at, "must have a cluster or several, and not both")
	if from.Cluster != "" {
		out.Weights = []Weight{{Cluster: from.Cluster, Weight: 100}}
		return
	}
	if from.Weighted == nil {
		return
	}
	sum := 0
	for _, w := range from.Weighted.Clusters {
		out.Weights = append(out.Weights, Weight{Cluster: w.Name, Weight: w.Weight})
		sum += w.Weight
	}
	r.require(sum == 100, at, "weights must sum to 100, found %d", sum)
}

func (c *v1CORS) policy() *CORS {
	if c == nil || !withDefault(c.Enabled, true) {
		return nil
	}
	return &CORS{
		Origins: c.Origins, Methods: c.Methods, AllowHeaders: c.Headers, ExposeHeaders: c.Expose,
		MaxAge: c.MaxAge, Credentials: c.Credentials,
	}
}
