package ir

import "math"

// maxWeight is what the weights of a route sum to at most: Envoy counts no
// further.
const maxWeight = math.MaxUint32

func (v *validator) route(at string, r *Route) {
	v.match(at, r.Match)
	v.require(count(r.Redirect != nil, r.Response != nil, len(r.Clusters) > 0) == 1, at,
		"must do exactly one of redirecting, answering and going to clusters")
	if r.Redirect != nil {
		v.redirect(at, *r.Redirect)
		return
	}
	if r.Response != nil {
		v.require(r.Response.Status >= 200 && r.Response.Status <= 599, at, "status must be 200 to 599, found %d", r.Response.Status)
		return
	}
	sum := 0
	for _, c := range r.Clusters {
		v.knows(at, c.Name)
		v.require(c.Weight >= 0, at, "weight of %s must not be negative, found %d", c.Name, c.Weight)
		sum += c.Weight
	}
	v.require(sum > 0 && sum <= maxWeight, at, "weights must sum to 1 to %d, found %d", maxWeight, sum)
	if r.Mirror != "" {
		v.knows(at+": mirror", r.Mirror)
	}
	v.require(r.Timeout >= 0, at, "timeout must not be negative, found %v", r.Timeout)
	if r.Retry != nil {
		v.require(r.Retry.Attempts > 0 && r.Retry.PerTryTimeout >= 0, at,
			"retry must have attempts and no negative timeout, found %+v", *r.Retry)
	}
	if f := r.Fault; f != nil {
		v.require(isPercent(f.DelayPercent) && isPercent(f.AbortPercent), at,
			"percentages of a fault must be 0 to 100, found %d and %d", f.DelayPercent, f.AbortPercent)
		v.require(f.Delay >= 0, at, "delay must not be negative, found %v", f.Delay)
	}
}

func (v *validator) redirect(at string, r Redirect) {
	v.require(r != Redirect{Code: r.Code}, at, "redirect must change the URL")
	v.require(r.Path == "" || r.Prefix == "", at, "redirect must replace the path or its prefix, found %+v", r)
	v.require(r.Port == 0 || validPort(r.Port), at, "port must be 1 to 65535, found %d", r.Port)
}

func (v *validator) match(at string, m Match) {
	v.require(count(m.Path != "", m.Prefix != "", m.Regex != "") <= 1, at,
		"must match a path, a prefix or a regex, found more than one: %+v", m)
	for _, h := range m.Headers {
		v.require(h.Name != "", at, "a header to match must have a name")
		v.require(count(h.Exact != "", h.Prefix != "", h.Regex != "", h.Present) <= 1, at,
			"header %s must match in one way, found more: %+v", h.Name, h)
		v.require(!h.Not || h.Present || h.Exact != "" || h.Prefix != "" || h.Regex != "", at,
			"header %s must not be asked not to be empty", h.Name)
	}
	for _, q := range m.Query {
		v.require(q.Name != "", at, "a query parameter to match must have a name")
		v.require(count(q.Exact != "", q.Regex != "", q.Present) <= 1, at,
			"query parameter %s must match in one way, found more: %+v", q.Name, q)
	}
}

func isPercent(n int) bool { return n >= 0 && n <= 100 }
