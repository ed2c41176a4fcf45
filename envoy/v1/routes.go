package v1

import (
	"cmp"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// RouteConfiguration is the answer of RDS. It may also be inline in a listener.
type RouteConfiguration struct {
	ValidateClusters bool          `json:"validate_clusters"`
	VirtualHosts     []VirtualHost `json:"virtual_hosts"`
}

// VirtualHost holds the routes of one host.
type VirtualHost struct {
	Name    string   `json:"name"`
	Domains []string `json:"domains"`
	Routes  []Route  `json:"routes"`
}

// Route has exactly one of prefix, path and regex, and exactly one of cluster,
// weighted clusters and redirects.
type Route struct {
	Prefix string `json:"prefix,omitempty"`
	Path   string `json:"path,omitempty"`
	Regex  string `json:"regex,omitempty"`
	// CaseSensitive is true if it is omitted.
	CaseSensitive *bool `json:"case_sensitive,omitempty"`

	PathRedirect string `json:"path_redirect,omitempty"`
	HostRedirect string `json:"host_redirect,omitempty"`

	PrefixRewrite    string            `json:"prefix_rewrite,omitempty"`
	HostRewrite      string            `json:"host_rewrite,omitempty"`
	Cluster          string            `json:"cluster,omitempty"`
	WeightedClusters *WeightedClusters `json:"weighted_clusters,omitempty"`

	Headers         []HeaderMatch `json:"headers,omitempty"`
	QueryParameters []QueryMatch  `json:"query_parameters,omitempty"`
	// TimeoutMS is always written: without it Envoy uses 15 s. 0 means none.
	TimeoutMS           int64        `json:"timeout_ms"`
	RetryPolicy         *RetryPolicy `json:"retry_policy,omitempty"`
	UseWebsocket        bool         `json:"use_websocket,omitempty"`
	Shadow              *Shadow      `json:"shadow,omitempty"`
	RequestHeadersToAdd []HeaderAdd  `json:"request_headers_to_add,omitempty"`
	CORS                *CORS        `json:"cors,omitempty"`
	HashPolicy          *HashPolicy  `json:"hash_policy,omitempty"`
	Decorator           *Decorator   `json:"decorator,omitempty"`
}

// WeightedClusters share the requests; the weights sum to 100.
type WeightedClusters struct {
	Clusters []WeightedCluster `json:"clusters"`
}

// WeightedCluster is one share.
type WeightedCluster struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
}

// RetryPolicy repeats failed requests.
type RetryPolicy struct {
	RetryOn         string `json:"retry_on"`
	NumRetries      int    `json:"num_retries,omitempty"`
	PerTryTimeoutMS int64  `json:"per_try_timeout_ms,omitempty"`
}

// Shadow names the cluster that gets a copy of requests.
type Shadow struct {
	Cluster string `json:"cluster"`
}

// HeaderAdd is a header to append.
type HeaderAdd struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Decorator names the span.
type Decorator struct {
	Operation string `json:"operation"`
}

// Routes returns the answer of RDS for one table. In v1 its name is in the URL only.
func Routes(t *ir.RouteTable) (RouteConfiguration, diag.List) {
	var problems diag.List
	hosts := make([]VirtualHost, len(t.VirtualHosts))
	for i, h := range t.VirtualHosts {
		host, p := OneHost(h)
		hosts[i] = host
		problems = append(problems, p...)
	}
	return RouteConfiguration{ValidateClusters: true, VirtualHosts: hosts}, problems
}

// OneHost returns one virtual host of a table. A route that v1 cannot express is closed.
func OneHost(h *ir.VirtualHost) (VirtualHost, diag.List) {
	var problems diag.List
	// Envoy limits names of virtual hosts as it does those of clusters.
	out := VirtualHost{Name: envoy.ClusterName(h.Name), Domains: domains(h), Routes: make([]Route, 0, len(h.Routes))}
	for _, r := range h.Routes {
		expressed, p := expressible(withinPort(h, r))
		problems = append(problems, p...)
		if expressed != nil {
			problems = append(problems, coarseWeights(expressed)...)
			problems = append(problems, unknownRetries(expressed)...)
			problems = append(problems, lostRetries(expressed)...)
			problems = append(problems, lostCORS(expressed)...)
			problems = append(problems, lostStatistics(expressed)...)
			problems = append(problems, lostQuery(expressed)...)
			problems = append(problems, lostMirrors(expressed)...)
			out.Routes = append(out.Routes, route(expressed))
		}
	}
	return out, problems
}

// Closes reports whether a route leads to BlackHole.
func (h VirtualHost) Closes() bool {
	return slices.ContainsFunc(h.Routes, func(r Route) bool { return r.Cluster == blackHole })
}

func route(r *ir.Route) Route {
	out := Route{TimeoutMS: millis(r.Timeout)}
	out.match(r.Match)
	if r.Operation != "" {
		out.Decorator = &Decorator{Operation: r.Operation}
	}
	if r.Redirect != nil {
		out.PathRedirect, out.HostRedirect = r.Redirect.Path, r.Redirect.Host
		return out
	}
	if r.Response != nil {
		out.Cluster = blackHole
		return out
	}
	out.forward(r)
	return out
}

func lostStatistics(r *ir.Route) diag.List {
	if r.StatPrefix == "" {
		return nil
	}
	return diag.Warn(diag.NotHonoured, r.Origins, "Envoy v1 keeps no statistics of a route, such as %s", r.StatPrefix)
}

// lostQuery reports a redirect with a query: in v1 a redirect has only a path.
func lostQuery(r *ir.Route) diag.List {
	if r.Redirect == nil || r.Redirect.Path == "" || r.Redirect.StripQuery {
		return nil
	}
	return diag.Warn(diag.NotHonoured, r.Origins, "Envoy v1 redirects to %s without the query of the request", r.Redirect.Path)
}

// shadow returns the index of the mirror that v1 can have, which gets all requests, or -1
// if there is none.
func shadow(r *ir.Route) int {
	return slices.IndexFunc(r.Mirrors, func(m ir.Mirror) bool { return m.PerMillion == ir.Million })
}

func lostMirrors(r *ir.Route) diag.List {
	var out diag.List
	for i, m := range r.Mirrors {
		if i != shadow(r) {
			out = append(out, diag.Warn(diag.NotHonoured, r.Origins,
				"Envoy v1 copies all requests to one place, or none: %s gets no copies", m.Cluster)...)
		}
	}
	return out
}

func (out *Route) forward(r *ir.Route) {
	out.clusters(r.Clusters)
	if r.Rewrite != nil {
		out.PrefixRewrite, out.HostRewrite = r.Rewrite.Path, r.Rewrite.Host
	}
	if r.Retry != nil && !r.Retry.ByDefault {
		out.RetryPolicy = &RetryPolicy{
			RetryOn:         cmp.Or(r.Retry.On, envoy.RetryOn),
			NumRetries:      r.Retry.Attempts,
			PerTryTimeoutMS: millis(r.Retry.PerTryTimeout),
		}
	}
	if m := shadow(r); m >= 0 {
		out.Shadow = &Shadow{Cluster: envoy.ClusterName(r.Mirrors[m].Cluster)}
	}
	for _, h := range r.RequestHeaders.Append {
		out.RequestHeadersToAdd = append(out.RequestHeadersToAdd, HeaderAdd{Key: h.Name, Value: envoy.HeaderValue(h.Value)})
	}
	out.UseWebsocket = r.WebSocket == ir.UpgradeAllowed
	out.CORS = cors(r.CORS)
	out.HashPolicy = hashPolicy(r.Hash)
}

func (out *Route) clusters(weighted []ir.WeightedCluster) {
	if len(weighted) == 1 {
		out.Cluster = envoy.ClusterName(weighted[0].Name)
		return
	}
	out.WeightedClusters = &WeightedClusters{}
	percent, _ := percentages(weighted)
	for i, w := range weighted {
		out.WeightedClusters.Clusters = append(out.WeightedClusters.Clusters,
			WeightedCluster{Name: envoy.ClusterName(w.Name), Weight: percent[i]})
	}
}
