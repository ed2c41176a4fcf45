package v1

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// RingHash sets the size of the ring of a ring_hash cluster.
type RingHash struct {
	MinimumRingSize int `json:"minimum_ring_size"`
}

// HashPolicy says by which header a route selects endpoints.
type HashPolicy struct {
	HeaderName string `json:"header_name"`
}

func lbType(c *ir.Cluster) string {
	if c.Type == ir.OriginalDestination {
		return "original_dst_lb"
	}
	switch c.LoadBalancer {
	case ir.LeastRequest:
		return "least_request"
	case ir.Random:
		return "random"
	case ir.RingHash, ir.Maglev:
		if c.Hash.Key.Header == "" {
			return "random"
		}
		return "ring_hash"
	default:
		return "round_robin"
	}
}

func ringHash(c *ir.Cluster) *RingHash {
	if lbType(c) != "ring_hash" || c.Hash.MinimumRing == 0 {
		return nil
	}
	return &RingHash{c.Hash.MinimumRing}
}

// hashPolicy returns the policy for the first header.
func hashPolicy(keys []ir.HashKey) *HashPolicy {
	for _, k := range keys {
		if k.Header != "" {
			return &HashPolicy{k.Header}
		}
	}
	return nil
}

// balancedOtherwise reports load balancing that v1 lacks: it hashes by a header only, on
// a ring.
func balancedOtherwise(c *ir.Cluster) diag.List {
	switch {
	case c.Warmup != nil:
		return diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 gives new endpoints of %s their full share at once", c.Name)
	case c.Hash == nil:
		return nil
	case c.Hash.Key.Header == "":
		return diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 picks endpoints of %s at random: it hashes by a header and nothing else", c.Name)
	case c.LoadBalancer == ir.Maglev:
		return diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 picks endpoints of %s by a ring: it has no tables of Maglev", c.Name)
	}
	return nil
}

// preferredOtherwise reports preferences between localities, which v1 lacks: an Envoy
// gets the zones of endpoints, but no rule for them.
func preferredOtherwise(c *ir.Cluster) diag.List {
	if c.Order == nil || c.Localities != nil && c.Localities.ByDefault {
		return nil
	}
	return diag.Warn(diag.NotHonoured, c.Origins, "Envoy v1 sends to all endpoints of %s alike, wherever they are", c.Name)
}
