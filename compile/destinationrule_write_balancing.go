package compile

import (
	"cmp"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

func (w policyWriter) loadBalancer(lb *networking.LoadBalancerSettings) {
	if w.Type == ir.OriginalDestination {
		return
	}
	switch lb.GetSimple().String() {
	case "UNSPECIFIED":
		w.LoadBalancer = ir.LeastRequest
		if w.pilot.DestinationRuleDefaults {
			w.LoadBalancer = ir.RoundRobin
		}
	case "LEAST_CONN", "LEAST_REQUEST":
		w.LoadBalancer = ir.LeastRequest
	case "RANDOM":
		w.LoadBalancer = ir.Random
	case "PASSTHROUGH":
		w.Type, w.Hosts, w.HealthCheck, w.Localities = ir.OriginalDestination, nil, nil, nil
		return
	default:
		w.LoadBalancer = ir.RoundRobin
	}
	w.consistentHash(lb.GetConsistentHash())
	if schema.WarmsUp(lb) {
		w.warmUp(lb)
	}
}

// defaultRing is Istio's default.
const defaultRing = 1024

func (w policyWriter) consistentHash(h *networking.LoadBalancerSettings_ConsistentHashLB) {
	key := hashKey(h)
	if key == (ir.HashKey{}) {
		return // It has nothing to hash by.
	}
	w.LoadBalancer = ir.RingHash
	if table := h.GetMaglev().GetTableSize(); table > 0 {
		w.LoadBalancer, w.Hash = ir.Maglev, &ir.Hash{Key: key, Table: int(table)}
		return
	}
	//lint:ignore SA1019 Old objects have it.
	old := h.GetMinimumRingSize()
	w.Hash = &ir.Hash{Key: key, MinimumRing: int(cmp.Or(h.GetRingHash().GetMinimumRingSize(), old, defaultRing))}
}

func hashKey(h *networking.LoadBalancerSettings_ConsistentHashLB) ir.HashKey {
	out := ir.HashKey{Header: h.GetHttpHeaderName(), Query: h.GetHttpQueryParameterName(), Source: h.GetUseSourceIp()}
	if c := h.GetHttpCookie(); c != nil {
		out.Cookie = &ir.Cookie{Name: c.GetName(), Path: c.GetPath(), TTL: said(c.GetTtl())}
		for _, a := range c.GetAttributes() {
			out.Cookie.Attributes = append(out.Cookie.Attributes, ir.Header{Name: a.GetName(), Value: a.GetValue()})
		}
	}
	return out
}

func (w policyWriter) warmUp(lb *networking.LoadBalancerSettings) {
	old := lb.GetWarmupDurationSecs().AsDuration()
	w.Warmup = &ir.Warmup{
		Duration:   cmp.Or(lb.GetWarmup().GetDuration().AsDuration(), old),
		Aggression: lb.GetWarmup().GetAggression().GetValue(),
	}
	if percent := lb.GetWarmup().GetMinimumPercent(); percent != nil {
		least := percent.GetValue()
		w.Warmup.MinimumPercent = &least
	}
}
