package ir

import (
	"math"
	"slices"
)

// maxWeight is the maximum sum of a route's weights in Envoy.
const maxWeight = math.MaxUint32

// maxGRPCStatus is the last gRPC status, UNAUTHENTICATED.
const maxGRPCStatus = 16

// checkRoute checks everything but the match.
func (k *closer) checkRoute(r *Route) error {
	var f faults
	f.require(count(r.Redirect != nil, r.Response != nil, len(r.Clusters) > 0) == 1,
		"must do exactly one of redirecting, answering and going to clusters")
	switch {
	case r.Redirect != nil:
		f.redirect(*r.Redirect)
	case r.Response != nil:
		f.require(r.Response.Status >= 200 && r.Response.Status <= 599, "status must be 200 to 599, found %d", r.Response.Status)
	default:
		k.forwarding(&f, r)
	}
	return f.err()
}

func (k *closer) forwarding(f *faults, r *Route) {
	k.shares(f, r.Clusters)
	for _, key := range r.Hash {
		f.hashKey(key)
	}
	for _, m := range r.Mirrors {
		k.knows(f, "mirror: ", m.Cluster)
		f.require(m.PerMillion > 0 && m.PerMillion <= Million, "mirror: must get 1 to %d of a million requests, found %d", Million, m.PerMillion)
	}
	f.require(r.Timeout >= 0, "timeout must not be negative, found %v", r.Timeout)
	if r.Retry != nil {
		f.require(r.Retry.Attempts > 0 && r.Retry.PerTryTimeout >= 0 && r.Retry.BackOff >= 0,
			"retry must have attempts and no negative time, found %+v", *r.Retry)
	}
	if t := r.Fault; t != nil {
		f.require(isShare(t.DelayPerMillion) && isShare(t.AbortPerMillion),
			"a fault must meet 0 to %d of a million requests, found %d and %d", Million, t.DelayPerMillion, t.AbortPerMillion)
		f.require(t.Delay >= 0, "delay must not be negative, found %v", t.Delay)
		f.require(t.AbortGRPC == nil || t.AbortStatus == 0 && *t.AbortGRPC >= 0 && *t.AbortGRPC <= maxGRPCStatus,
			"an abort must have a status of HTTP, or one of gRPC of 0 to %d", maxGRPCStatus)
	}
	if r.CORS != nil {
		for _, o := range r.CORS.AllowOrigins {
			f.require(count(o.Exact != "", o.Prefix != "", o.Regex != "") == 1, "an origin must be matched in one way, found %+v", o)
		}
	}
}

func (k *closer) shares(f *faults, clusters []WeightedCluster) {
	sum := 0
	for _, c := range clusters {
		k.knows(f, "", c.Name)
		f.require(c.Weight >= 0, "weight of %s must not be negative, found %d", c.Name, c.Weight)
		sum += c.Weight
	}
	f.require(sum > 0 && sum <= maxWeight, "weights must sum to 1 to %d, found %d", maxWeight, sum)
}

func (f *faults) redirect(r Redirect) {
	f.require(r != Redirect{Code: r.Code, StripQuery: r.StripQuery}, "redirect must change the URL")
	f.require(r.Path == "" || r.Prefix == "", "redirect must replace the path or its prefix, found %+v", r)
	f.require(r.Port == 0 || validPort(r.Port), "port must be 1 to 65535, found %d", r.Port)
}

// closeMatch returns the match without its invalid conditions, and an error that
// describes them. The result matches at least the same requests.
func closeMatch(m Match) (Match, error) {
	var f faults
	out := Match{Path: m.Path, Prefix: m.Prefix, Regex: m.Regex, IgnoreCase: m.IgnoreCase}
	if count(m.Path != "", m.Prefix != "", m.Regex != "") > 1 {
		f.require(false, "must match a path, a prefix or a regex, found more than one: %+v", m)
		out = Match{}
	}
	out.Headers = sound(&f, m.Headers, checkHeader)
	out.Query = sound(&f, m.Query, checkQuery)
	return out, f.err()
}

// sound returns the valid conditions.
func sound[T any](f *faults, conditions []T, check func(T) error) []T {
	if !slices.ContainsFunc(conditions, func(c T) bool { return check(c) != nil }) {
		return conditions
	}
	var out []T
	for _, c := range conditions {
		if err := check(c); err != nil {
			*f = append(*f, err)
			continue
		}
		out = append(out, c)
	}
	return out
}

func checkHeader(h HeaderMatch) error {
	var f faults
	f.require(h.Name != "", "a header to match must have a name")
	f.require(count(h.Exact != "", h.Prefix != "", h.Regex != "", h.Present) <= 1,
		"header %s must match in one way, found more: %+v", h.Name, h)
	f.require(!h.Not || h.Present || h.Exact != "" || h.Prefix != "" || h.Regex != "",
		"header %s must not be asked not to be empty", h.Name)
	return f.err()
}

func checkQuery(q QueryMatch) error {
	var f faults
	f.require(q.Name != "", "a query parameter to match must have a name")
	f.require(count(q.Exact != "", q.Regex != "", q.Present) <= 1,
		"query parameter %s must match in one way, found more: %+v", q.Name, q)
	return f.err()
}

func isShare(n int) bool { return n >= 0 && n <= Million }
