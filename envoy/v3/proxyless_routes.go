package v3

import (
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// proxylessRoute returns a route in a form that gRPC accepts, which may need several
// routes. They are closed if gRPC cannot act as written.
func proxylessRoute(r *ir.Route) ([]*routev3.Route, diag.List) {
	matches, lacks := proxylessMatches(r.Match)
	lacks = append(lacks, beyondCalls(r)...)
	if len(matches) == 0 {
		return nil, nil
	}
	if len(lacks) > 0 {
		return closedProxyless(r, matches, strings.Join(lacks, "; "))
	}
	action, perFilter, problems := proxylessAction(r)
	var out []*routev3.Route
	for _, m := range matches {
		encoded := &routev3.Route{Name: r.Name, Match: routeMatch(m), TypedPerFilterConfig: perFilter}
		if action == nil {
			encoded.Action = directResponse(ir.Unavailable())
		} else {
			encoded.Action = &routev3.Route_Route{Route: action}
		}
		if err := Check(encoded); err != nil {
			return closedProxyless(r, each(matches, acceptableMatch), err.Error())
		}
		out = append(out, encoded)
	}
	return out, problems
}

// closedProxyless returns a route that fails calls that fit the usable conditions of the
// match. gRPC fails them with UNAVAILABLE and knows no other answer.
func closedProxyless(r *ir.Route, matches []ir.Match, why string) ([]*routev3.Route, diag.List) {
	if r.Optional {
		return nil, diag.Warn(diag.NotHonoured, r.Origins, "gRPC without a proxy gets no such route: %s", why)
	}
	var out []*routev3.Route
	for _, m := range matches {
		closed, _ := route(r.Closed(m))
		out = append(out, closed)
	}
	return out, diag.Warn(diag.NotHonoured, r.Origins, "gRPC without a proxy answers UNAVAILABLE in place of this route: %s", why)
}

// beyondCalls returns the actions of a route that change a call and that gRPC lacks, as
// text for people.
func beyondCalls(r *ir.Route) []string {
	var out []string
	if r.Rewrite != nil {
		out = append(out, "it rewrites nothing")
	}
	changes := !r.RequestHeaders.Empty() || !r.ResponseHeaders.Empty() ||
		slices.ContainsFunc(r.Clusters, ir.WeightedCluster.ChangesHeaders)
	if changes {
		out = append(out, "it changes no headers")
	}
	return out
}

// proxylessAction returns nil if a call ends at the caller.
func proxylessAction(r *ir.Route) (*routev3.RouteAction, map[string]*anypb.Any, diag.List) {
	switch {
	case r.Redirect != nil:
		return nil, nil, ends(r, "it follows no redirects")
	case r.Response != nil && *r.Response != *ir.Unavailable() && *r.Response != *ir.BadPath():
		return nil, nil, ends(r, fmt.Sprintf("it gives no answers such as %d of its own", r.Response.Status))
	case r.Response != nil:
		return nil, nil, nil
	}
	out := &routev3.RouteAction{}
	toClusters(out, r.Clusters)
	if r.Timeout > 0 {
		out.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: durationpb.New(r.Timeout)}
	}
	hash, problems := proxylessHash(r)
	retry, p := proxylessRetry(r)
	out.HashPolicy, out.RetryPolicy, problems = hash, retry, append(problems, p...)
	if len(r.Mirrors) > 0 {
		problems = append(problems, without(r, "copies no calls")...)
	}
	trouble, p := fault(r)
	problems = append(problems, p...)
	if trouble == nil {
		return out, nil, problems
	}
	return out, map[string]*anypb.Any{faultFilter: typed(trouble)}, problems
}

func each[T any](all []T, do func(T) T) []T {
	out := make([]T, len(all))
	for i, one := range all {
		out[i] = do(one)
	}
	return out
}

func ends(r *ir.Route, why string) diag.List {
	return diag.Warn(diag.NotHonoured, r.Origins, "gRPC without a proxy answers UNAVAILABLE in place of this route: %s", why)
}

func without(r *ir.Route, format string, args ...any) diag.List {
	return diag.Warn(diag.NotHonoured, r.Origins, "gRPC without a proxy "+format, args...)
}

// channelHash distinguishes channels, as addresses distinguish callers.
var channelHash = &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_FilterState_{
	FilterState: &routev3.RouteAction_HashPolicy_FilterState{Key: "io.grpc.channel_id"}}}

func proxylessHash(r *ir.Route) ([]*routev3.RouteAction_HashPolicy, diag.List) {
	var out []*routev3.RouteAction_HashPolicy
	var problems diag.List
	for _, k := range r.Hash {
		switch {
		case k.Source:
			out = append(out, channelHash)
		case k.Header != "" && !unseen(strings.ToLower(k.Header)):
			out = append(out, hashPolicy(k))
		default:
			problems = append(problems, without(r, "picks endpoints at random: it hashes by what a call says in its headers")...)
		}
	}
	return out, problems
}

// retryCodes are the conditions that gRPC knows. It retries calls that reached no server in
// any case.
var (
	retryCodes = []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}
	unreached  = []string{"connect-failure", "refused-stream", "reset-before-request"}
)

// proxylessRetry returns nil if no condition is one on which gRPC retries.
func proxylessRetry(r *ir.Route) (*routev3.RetryPolicy, diag.List) {
	if r.Retry == nil {
		return nil, nil
	}
	full := retryPolicy(r.Retry, false)
	var known, unknown []string
	for word := range strings.SplitSeq(full.GetRetryOn(), ",") {
		switch {
		case slices.Contains(retryCodes, word):
			known = append(known, word)
		case !slices.Contains(unreached, word) && word != "retriable-status-codes":
			unknown = append(unknown, word)
		}
	}
	for _, code := range r.Retry.StatusCodes {
		unknown = append(unknown, fmt.Sprint(code))
	}
	var problems diag.List
	if !r.Retry.ByDefault && len(unknown) > 0 {
		problems = without(r, "does not try again on %s: it knows %s", strings.Join(unknown, ", "), strings.Join(retryCodes, ", "))
	}
	if !r.Retry.ByDefault && r.Retry.PerTryTimeout > 0 {
		problems = append(problems, without(r, "limits all tries together, and not each")...)
	}
	if len(known) == 0 {
		return nil, problems
	}
	return &routev3.RetryPolicy{
		RetryOn: strings.Join(known, ","), NumRetries: full.GetNumRetries(), RetryBackOff: full.GetRetryBackOff(),
	}, problems
}
