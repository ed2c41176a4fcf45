package v3

import (
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ondemandv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/on_demand/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

const onDemandFilter = "envoy.filters.http.on_demand"

// asking makes requests for a host that the route table lacks wait until the server has
// answered. The filter comes before those that need the route.
var asking = fix(&ondemandv3.OnDemand{})

// maxAsking bounds how long a request waits for the server to answer. The request then gets
// 504. A request that has a route is not bounded by it (OnDemandHost).
const maxAsking = 30 * time.Second

// asksFor reports whether an HTTP listener has a table that may lack hosts.
func (s Source) asksFor(h *ir.HTTPListener) bool { return s.onDemand && h.Inline == nil }

// OnDemandHost is VirtualHost for a table that may lack hosts. The listener bounds how long a
// stream may be silent, so each route that forwards removes that bound.
func OnDemandHost(h *ir.VirtualHost) (*routev3.VirtualHost, diag.List) {
	out, problems := VirtualHost(h)
	for _, r := range out.GetRoutes() {
		if forwards := r.GetRoute(); forwards != nil {
			forwards.IdleTimeout = durationpb.New(0)
		}
	}
	return out, problems
}
