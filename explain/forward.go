package explain

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// Forward describes what is sent to clusters, and how it is changed.
type Forward struct {
	// TCP means that the connection is forwarded as it is, and that requests are
	// not read.
	TCP bool `json:"tcp,omitempty"`
	// Host and Path are those that the cluster receives.
	Host     string    `json:"host,omitempty"`
	Path     string    `json:"path,omitempty"`
	Clusters []Cluster `json:"clusters"`

	// Unset values are "" or empty.
	Timeout string   `json:"timeout,omitempty"`
	Retries string   `json:"retries,omitempty"`
	Faults  []string `json:"faults,omitempty"`
	Mirrors []string `json:"mirrors,omitempty"`
	Hash    []string `json:"hash,omitempty"`
	CORS    string   `json:"cors,omitempty"`
	// RequestHeaders and ResponseHeaders describe the headers that are changed.
	RequestHeaders  []string `json:"requestHeaders,omitempty"`
	ResponseHeaders []string `json:"responseHeaders,omitempty"`
}

// Cluster is the target of a share of the requests.
type Cluster struct {
	Name    string     `json:"name"`
	Percent float64    `json:"percent"`
	Origins []diag.Ref `json:"origins,omitempty"`
	// Endpoints are the current ones; for clusters that use DNS, the names to
	// resolve.
	Endpoints []string `json:"endpoints,omitempty"`
	// Note says how endpoints are found if they are not listed, or that there are
	// none.
	Note string `json:"note,omitempty"`
	// Host replaces the host of the route, if set.
	Host            string   `json:"host,omitempty"`
	RequestHeaders  []string `json:"requestHeaders,omitempty"`
	ResponseHeaders []string `json:"responseHeaders,omitempty"`
}

// take records what a route does to a request that it matches.
func (p Proxy) take(route *ir.Route, r Request, e *Explanation) {
	switch {
	case route.Redirect != nil:
		e.Answer = &Answer{Status: cmp.Or(route.Redirect.Code, http.StatusMovedPermanently), Location: shownPath(location(route, r))}
		return
	case route.Response != nil:
		e.Answer = &Answer{Status: route.Response.Status, Body: route.Response.Body}
		return
	}
	e.Forward = &Forward{
		Host: r.Host, Path: shownPath(rewritten(route, r)), Clusters: p.shares(route.Clusters),
		Timeout: durationText(route.Timeout), Retries: retryText(route.Retry), Faults: faultTexts(route.Fault),
		Mirrors: mirrorTexts(route.Mirrors), Hash: hashTexts(route.Hash), CORS: corsText(route.CORS),
		RequestHeaders: headerChanges(route.RequestHeaders), ResponseHeaders: headerChanges(route.ResponseHeaders),
	}
	if route.Rewrite != nil {
		e.Forward.Host = cmp.Or(route.Rewrite.Host, r.Host)
	}
}

// shares leaves out clusters with a weight of 0.
func (p Proxy) shares(clusters []ir.WeightedCluster) []Cluster {
	total := 0
	for _, w := range clusters {
		total += w.Weight
	}
	var out []Cluster
	for _, w := range clusters {
		if w.Weight == 0 {
			continue
		}
		c := Cluster{
			Name: w.Name, Percent: 100 * float64(w.Weight) / float64(total), Host: w.Host,
			RequestHeaders: headerChanges(w.RequestHeaders), ResponseHeaders: headerChanges(w.ResponseHeaders),
		}
		p.endpoints(&c)
		out = append(out, c)
	}
	return out
}

// endpoints fills in the endpoints of a cluster.
func (p Proxy) endpoints(out *Cluster) {
	at := slices.IndexFunc(p.Config.Clusters, func(c *ir.Cluster) bool { return c.Name == out.Name })
	if at < 0 {
		out.Note = "there is no such cluster: 503"
		return
	}
	c := p.Config.Clusters[at]
	out.Origins = c.Origins
	if c.Type == ir.OriginalDestination {
		out.Note = "where the connection was going"
		return
	}
	for _, e := range p.members(c) {
		out.Endpoints = append(out.Endpoints, endpointText(e))
	}
	if len(out.Endpoints) == 0 {
		out.Note = "no endpoints: 503"
	}
}

// members returns the known endpoints of a cluster.
func (p Proxy) members(c *ir.Cluster) []ir.Endpoint {
	if c.Type != ir.Registry {
		return c.Hosts
	}
	if p.Members == nil {
		return nil
	}
	return c.Order.Arranged(p.Members(c.EndpointKey))
}

func location(route *ir.Route, r Request) string {
	to := route.Redirect
	host, path := cmp.Or(to.Host, r.Host), r.Path
	if to.Port != 0 {
		if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
			host = host[:at]
		}
		host = fmt.Sprintf("%s:%d", host, to.Port)
	}
	if to.Prefix != "" {
		path = replaced(route.Match, to.Prefix, r)
	}
	if to.Path != "" {
		path = to.Path
		if _, query := r.bare(); !to.StripQuery {
			path += query
		}
	}
	return cmp.Or(to.Scheme, r.Scheme) + "://" + host + path
}

func rewritten(route *ir.Route, r Request) string {
	path, query := r.bare()
	switch to := route.Rewrite; {
	case to == nil:
		return r.Path
	case to.Regex != nil:
		re, err := regexp.Compile(to.Regex.Match)
		if err != nil {
			return r.Path
		}
		text := backReference.ReplaceAllString(strings.ReplaceAll(to.Regex.Substitution, "$", "$$"), "$${$1}")
		return re.ReplaceAllString(path, text) + query
	case to.Path == "":
		return r.Path
	default:
		return replaced(route.Match, to.Path, r)
	}
}

var backReference = regexp.MustCompile(`\\([0-9])`)

// replaced replaces what matched, the prefix or the whole path without the query,
// by the text.
func replaced(m ir.Match, text string, r Request) string {
	if m.Path == "" && m.Regex == "" {
		return text + r.Path[len(cmp.Or(m.Prefix, "/")):]
	}
	_, query := r.bare()
	return text + query
}
