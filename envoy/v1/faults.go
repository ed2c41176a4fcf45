package v1

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// Fault is the config of a fault filter. In v1 a fault belongs to a listener. It selects
// requests by their cluster and their headers.
type Fault struct {
	Abort           *Abort        `json:"abort,omitempty"`
	Delay           *Delay        `json:"delay,omitempty"`
	Headers         []HeaderMatch `json:"headers,omitempty"`
	UpstreamCluster string        `json:"upstream_cluster"`
}

// Abort answers requests instead of the upstream.
type Abort struct {
	Percent    int `json:"abort_percent"`
	HTTPStatus int `json:"http_status"`
}

// Delay waits before forwarding.
type Delay struct {
	Type            string `json:"type"`
	Percent         int    `json:"fixed_delay_percent"`
	FixedDurationMS int64  `json:"fixed_duration_ms"`
}

// maxAbortStatus is the largest status that v1 accepts.
const maxAbortStatus = 599

// faults returns the fault filters for the routes of a table, one for each cluster of a
// route. Equal filters are merged, because each filter draws its own random number.
func (b *listenerBuilder) faults(l *ir.Listener, t *ir.RouteTable) []Filter {
	if t == nil {
		return nil
	}
	index := sync.OnceValue(func() clusterRoutes { return routesByCluster(t) })
	seen := map[string]bool{}
	var out []Filter
	for i, h := range t.VirtualHosts {
		for j, r := range h.Routes {
			filters := b.routeFaults(l, r)
			if len(filters) > 0 {
				b.reportReach(placed{r, i, j}, index())
			}
			for _, f := range filters {
				key := f.key()
				if !seen[key] {
					seen[key] = true
					out = append(out, Filter{Type: "decoder", Name: "fault", Config: f})
				}
			}
		}
	}
	return out
}

func (b *listenerBuilder) routeFaults(l *ir.Listener, r *ir.Route) []Fault {
	if r.Fault == nil || r.Redirect != nil {
		return nil
	}
	if expressed, _ := expressible(r); expressed != r {
		return nil
	}
	// As in Pilot, such a listener has no fault filters.
	if l.HTTP.ForwardProxy && !l.HTTP.AbsoluteURLs {
		b.warn(r.Origins, "Envoy v1 injects no fault into requests through listener %s", envoy.ListenerName(l))
		return nil
	}
	f := Fault{Headers: headerMatches(r.Match.Headers), Delay: b.wait(r), Abort: b.abort(r)}
	if f.Delay == nil && f.Abort == nil {
		return nil
	}
	out := make([]Fault, len(r.Clusters))
	for i, c := range r.Clusters {
		out[i] = f
		out[i].UpstreamCluster = envoy.ClusterName(c.Name)
	}
	return out
}

// reportReach reports a fault that also affects requests of other routes.
func (b *listenerBuilder) reportReach(r placed, index clusterRoutes) {
	const because = "its faults know clusters and headers only"
	if !r.Match.AnyPath() || len(r.Match.Query) > 0 {
		b.warn(r.Origins, "Envoy v1 injects the fault whatever the path: "+because)
	} else if other := index.bystander(r); other != nil {
		b.warn(r.Origins, "Envoy v1 injects the fault also into requests by %s to the same cluster: "+because, origins(other))
	}
}

// origins names the objects from which a route follows, for people.
func origins(r *ir.Route) string {
	names := make([]string, len(r.Origins))
	for i, o := range r.Origins {
		names[i] = o.String()
	}
	return strings.Join(names, ", ")
}

func (b *listenerBuilder) wait(r *ir.Route) *Delay {
	f := r.Fault
	if !f.Delays() {
		return nil
	}
	percent := b.wholePercent(r, "delays", f.DelayPerMillion)
	if percent == 0 {
		return nil
	}
	return &Delay{Type: "fixed", Percent: percent, FixedDurationMS: millis(f.Delay)}
}

// wholePercent returns a percentage without its fraction.
func (b *listenerBuilder) wholePercent(r *ir.Route, does string, perMillion int) int {
	const one = ir.Million / 100
	if perMillion%one != 0 {
		b.warn(r.Origins, "Envoy v1 knows whole percents: it %s %d %% of the requests, not %v %%", does, perMillion/one, float64(perMillion)/one)
	}
	return perMillion / one
}

func (b *listenerBuilder) abort(r *ir.Route) *Abort {
	f := r.Fault
	if !f.Aborts() {
		return nil
	}
	percent := b.wholePercent(r, "aborts", f.AbortPerMillion)
	if percent == 0 {
		return nil
	}
	status := f.AbortStatus
	if f.AbortGRPC != nil {
		b.warn(r.Origins, "Envoy v1 aborts with a status of HTTP: it answers 503 instead of status %d of gRPC", *f.AbortGRPC)
		status = http.StatusServiceUnavailable
	}
	if f.AbortStatus > maxAbortStatus {
		b.warn(r.Origins, "Envoy v1 aborts with a status of at most %d, found %d; it answers 503 instead", maxAbortStatus, f.AbortStatus)
		status = http.StatusServiceUnavailable
	}
	return &Abort{Percent: percent, HTTPStatus: status}
}

// key is equal for equal faults only.
func (f Fault) key() string {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // Plain strings and numbers only.
	}
	return string(text)
}
