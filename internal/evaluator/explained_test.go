package evaluator_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/ir"
)

// unexplained are the differences between what people are told of requests and
// what an Envoy of v3 does with them, but for what there was a complaint about.
func (s *spelled) unexplained(requests []evaluator.Request) []string {
	var out []string
	p := explain.Proxy{Config: s.config, IP: s.ip}
	for _, r := range requests {
		if s.nameless(r) {
			continue
		}
		asked := s.asked(r)
		told, seen := fromExplanation(p.Explain(asked)), seen(s.v3.Evaluate(r))
		if asked.Scheme == "https" { // The evaluator knows no other scheme than http.
			_, told.Location, _ = strings.Cut(told.Location, "://")
			_, seen.Location, _ = strings.Cut(seen.Location, "://")
		}
		d := cmp.Diff(told, seen, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-9))
		if d != "" && !s.complainedHost(told.VirtualHost) {
			out = append(out, fmt.Sprintf("request %+v (-explained +v3):\n%s", r, d))
		}
	}
	return out
}

// nameless is a request that may be of a client who begins TLS and asks for no
// name, where names lead clients apart. Nobody asks about such a one.
func (s *spelled) nameless(r evaluator.Request) bool {
	return r.ServerName == "" && slices.ContainsFunc(s.config.ListenersAt(s.ip), func(l *ir.Listener) bool {
		return l.Port == int(r.Destination.Port()) && len(l.Chains) > 0
	})
}

// asked is the request in the words of package explain.
func (s *spelled) asked(r evaluator.Request) explain.Request {
	out := explain.Request{
		Method: r.Method, Scheme: "http", Host: r.Host, Path: r.Path, Headers: map[string][]string{},
		Way: explain.Direct, Port: int(r.Destination.Port()), Address: r.Destination.Addr().String(),
	}
	for name, value := range r.Headers {
		out.Headers[name] = []string{value}
	}
	switch {
	case r.Captured:
		out.Way = explain.Captured
	case r.AbsoluteForm:
		out.Way = explain.Asked
	}
	if r.ServerName != "" {
		out.Scheme, out.Host = "https", r.ServerName
	}
	for _, l := range s.config.ListenersAt(s.ip) {
		if l.Port == out.Port && l.TLS != nil {
			out.Scheme = "https"
		}
	}
	return out
}

// told is what an explanation and an outcome have in common. What else a route
// does is copied from it, not found out.
type told struct {
	Taken, TCP       bool
	VirtualHost      string
	Status           int
	Location, Body   string
	Host, Path       string
	Clusters         []string
	Percents         []float64
	Timeout          string
	Mirrors, Retries bool
}

func fromExplanation(e *explain.Explanation) told {
	out := told{VirtualHost: e.VirtualHost}
	if a := e.Answer; a != nil {
		out.Taken, out.Status, out.Location, out.Body = true, a.Status, a.Location, a.Body
	}
	if f := e.Forward; f != nil {
		out.Taken, out.TCP, out.Host, out.Path, out.Timeout = true, f.TCP, f.Host, f.Path, f.Timeout
		out.Mirrors, out.Retries = len(f.Mirrors) > 0, f.Retries != ""
		for _, c := range f.Clusters {
			out.Clusters = append(out.Clusters, envoy.ClusterName(c.Name))
			out.Percents = append(out.Percents, c.Percent)
		}
	}
	return out
}

func seen(o evaluator.Outcome) told {
	out := told{TCP: o.TCP, VirtualHost: o.VirtualHost, Status: o.Status, Location: o.Location, Body: o.Body, Host: o.Host, Path: o.Path}
	out.Taken = o.TCP || o.Status != 0 || len(o.Shares) > 0
	if o.Timeout > 0 {
		out.Timeout = o.Timeout.String()
	}
	out.Mirrors, out.Retries = len(o.Mirrors) > 0, o.Retry != nil && o.Retry.Attempts > 0
	for _, share := range o.Shares {
		out.Clusters = append(out.Clusters, share.Cluster)
		out.Percents = append(out.Percents, share.Percent)
	}
	return out
}
