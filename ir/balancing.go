package ir

import (
	"slices"
	"time"
)

// Hash sends requests with equal keys to the same endpoint while that endpoint
// exists. Routes to the cluster have the key too: Route.Hash, TCPRoute.HashSource.
type Hash struct {
	Key HashKey
	// MinimumRing is the minimum size of a RingHash; 0 leaves Envoy's default.
	MinimumRing int
	// Table is the size of a Maglev table, a prime.
	Table int
}

// HashKey is the part of a request that is hashed. Exactly one field is set.
type HashKey struct {
	Header, Query string
	Cookie        *Cookie
	Source        bool // the caller's address
}

// Cookie is a cookie that callers send. If TTL is set, callers that send none are
// given one. It lives for TTL, or with 0 for the caller's session.
type Cookie struct {
	Name, Path string
	TTL        *time.Duration
	Attributes []Header // of a cookie that the proxy sets
}

// Warmup gives a new endpoint its full share only after Duration.
type Warmup struct {
	Duration time.Duration
	// Aggression above 1 lets the share grow faster at first, below 1 later; 0 is
	// 1.
	Aggression float64
	// MinimumPercent is the part of the share that an endpoint gets at once; nil
	// leaves Envoy's default.
	MinimumPercent *float64
}

func (f *faults) balancing(c *Cluster) {
	hashes := c.LoadBalancer == RingHash || c.LoadBalancer == Maglev
	f.require(hashes == (c.Hash != nil), "must have a hash with balancer ring-hash or maglev alone, found %q", c.LoadBalancer)
	if h := c.Hash; h != nil {
		f.hashKey(h.Key)
		f.require(h.MinimumRing >= 0 && h.MinimumRing <= maxRing, "ring must be of 0 to %d, found %d", maxRing, h.MinimumRing)
		f.require(c.LoadBalancer != Maglev || isPrime(h.Table) && h.Table <= maxTable, "table must be a prime of up to %d, found %d", maxTable, h.Table)
	}
	if w := c.Warmup; w != nil {
		f.require(w.Duration > 0 && w.Aggression >= 0, "warm-up must have a duration and no negative aggression, found %+v", *w)
		f.require(w.MinimumPercent == nil || *w.MinimumPercent >= 0 && *w.MinimumPercent <= 100, "warm-up must begin with 0 to 100 percent")
		f.require(c.LoadBalancer == RoundRobin || c.LoadBalancer == LeastRequest, "warm-up goes with round-robin and least-request, found %q", c.LoadBalancer)
	}
}

// Limits of Envoy.
const (
	maxRing  = 8 << 20
	maxTable = 5_000_011
)

func (f *faults) hashKey(k HashKey) {
	f.require(count(k.Header != "", k.Query != "", k.Cookie != nil, k.Source) == 1, "must hash by exactly one of header, query, cookie and source, found %+v", k)
	if c := k.Cookie; c != nil {
		f.require(c.Name != "", "cookie must have a name")
		f.require(c.TTL == nil || *c.TTL >= 0, "cookie must not last negative time")
		f.require(!slices.ContainsFunc(c.Attributes, func(h Header) bool { return h.Name == "" }), "attributes of a cookie must have names")
	}
}

func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}
