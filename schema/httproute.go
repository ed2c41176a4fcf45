package schema

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// httpRoute leaves it to the JSON Schema to check which fields exclude each other.
func (p *problems) httpRoute(field string, r *networking.HTTPRoute, forSidecars bool) {
	if len(r.Route) == 0 && r.Redirect == nil && r.DirectResponse == nil && r.Delegate == nil {
		p.required(field+".route", "must be given, or else redirect, directResponse or delegate")
	}
	for i, m := range r.Match {
		p.httpMatch(indexField(field+".match", i), m, forSidecars)
	}
	for i, d := range r.Route {
		at := indexField(field+".route", i)
		p.destination(at+".destination", d.Destination)
		p.headerChanges(at+".headers", d.Headers)
		p.headerValues(at+".headers", d.Headers)
	}
	p.weights(field+".route", len(r.Route), func(i int) int32 { return r.Route[i].Weight })
	p.httpRedirect(field+".redirect", r)
	p.httpRewrite(field+".rewrite", r.Rewrite)
	p.rewrittenPath(field+".rewrite.uri", r)
	p.httpRetries(field+".retries", r.Retries)
	p.httpFault(field+".fault", r.Fault)
	p.httpMirror(field, r)
	p.httpCors(field+".corsPolicy", r.CorsPolicy)
	p.headerChanges(field+".headers", r.Headers)
	p.headerValues(field+".headers", r.Headers)
	p.authority(field, r)
}

func indexField(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

func (p *problems) httpRedirect(field string, r *networking.HTTPRoute) {
	to := r.Redirect
	if to == nil {
		return
	}
	if to.Uri == "" && to.PrefixRewrite == "" && to.Authority == "" && to.Scheme == "" && to.RedirectPort == nil {
		p.required(field, "must set where to: uri, prefixRewrite, authority, scheme, port or derivePort")
	}
	if to.PrefixRewrite == "" {
		return
	}
	if len(r.Match) == 0 {
		p.warn(field+".prefixRewrite", "has no effect: the route does not match a path by prefix")
	}
	for i, m := range r.Match {
		if _, byPrefix := m.GetUri().GetMatchType().(*networking.StringMatch_Prefix); !byPrefix {
			p.invalid(field+".prefixRewrite", fmt.Sprintf("must go with matches of uri.prefix only: match[%d] has none to rewrite", i))
		}
	}
}

func (p *problems) httpRewrite(field string, r *networking.HTTPRewrite) {
	if r != nil && r.Uri == "" && r.UriRegexRewrite == nil && r.Authority == "" {
		p.required(field, "must set uri, uriRegexRewrite or authority")
	}
	if strings.ContainsAny(r.GetAuthority(), " \t") {
		p.suspect(field+".authority", "makes a host with a space, which services refuse")
	}
	if regex := r.GetUriRegexRewrite().GetMatch(); regex != "" {
		p.regexSize(field+".uriRegexRewrite.match", regex)
	}
}

// rewrittenPath warns of paths that no service understands.
func (p *problems) rewrittenPath(field string, r *networking.HTTPRoute) {
	uri := r.GetRewrite().GetUri()
	switch {
	case uri == "":
		return
	case !strings.HasPrefix(uri, "/"):
		p.suspect(field, "makes paths that do not begin with a slash, which services refuse")
	case strings.ContainsAny(uri, " \t#"):
		p.suspect(field, "makes paths with a space or #, which services refuse; write %20 or %23")
	case strings.Contains(uri, "?"):
		p.suspect(field, "turns everything after the question mark into a query, including the rest of the path")
	}
	for i, m := range r.Match {
		if prefix := m.GetUri().GetPrefix(); len(prefix) > 1 && strings.HasSuffix(prefix, "/") && !strings.HasSuffix(uri, "/") {
			p.suspect(field, fmt.Sprintf("replaces only %q in match[%d], so that %sx becomes %sx; end both with a slash", prefix, i, prefix, uri))
			return
		}
	}
}

// retryConditions are the conditions that Envoy supports, for HTTP and then for
// gRPC.
var retryConditions = []string{
	"5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "envoy-ratelimited", "retriable-4xx",
	"refused-stream", "retriable-status-codes", "retriable-headers", "http3-post-connect-failure",
	"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable",
}

func (p *problems) httpRetries(field string, r *networking.HTTPRetry) {
	if r == nil {
		return
	}
	if r.Attempts == 0 && (r.PerTryTimeout != nil || r.RetryOn != "" || r.RetryRemoteLocalities != nil) {
		p.required(field+".attempts", "must be given and above 0: otherwise no request is retried, whatever else is set")
	}
	if r.RetryOn == "" {
		return
	}
	for condition := range strings.SplitSeq(r.RetryOn, ",") {
		status, _ := strconv.Atoi(condition)
		if http.StatusText(status) == "" && !slices.Contains(retryConditions, condition) {
			p.notSupportedValue(field+".retryOn", condition, "must be conditions joined by commas without spaces: status codes, "+strings.Join(retryConditions, ", "))
		}
	}
}

// grpcStatuses are the names of the gRPC status codes, from 0.
var grpcStatuses = []string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// GRPCStatus returns the number of a status by its name.
func GRPCStatus(name string) (int, bool) {
	at := slices.Index(grpcStatuses, name)
	return at, at >= 0
}

func (p *problems) httpFault(field string, f *networking.HTTPFaultInjection) {
	if f == nil {
		return
	}
	if f.Delay == nil && f.Abort == nil {
		p.required(field, "must set delay, abort or both")
	}
	p.httpDelay(field+".delay", f.Delay)
	p.httpAbort(field+".abort", f.Abort)
}

func (p *problems) httpDelay(field string, d *networking.HTTPFaultInjection_Delay) {
	if d == nil {
		return
	}
	switch d.HttpDelayType.(type) {
	case nil:
		p.warn(field, "delays no request: fixedDelay is not given")
	case *networking.HTTPFaultInjection_Delay_ExponentialDelay:
		p.notSupported(field+".exponentialDelay", "delays of random length are not supported; use fixedDelay")
	}
	p.share(field+".percentage", d.Percentage)
	//lint:ignore SA1019 Old objects have it.
	if d.Percentage != nil && d.GetPercent() != 0 {
		p.suspect(field+".percent", "has no effect together with percentage")
	}
}

func (p *problems) httpAbort(field string, a *networking.HTTPFaultInjection_Abort) {
	if a == nil {
		return
	}
	switch kind := a.ErrorType.(type) {
	case nil:
		p.warn(field, "aborts no request: neither httpStatus nor grpcStatus is given")
	case *networking.HTTPFaultInjection_Abort_Http2Error:
		p.notSupported(field+".http2Error", "HTTP/2 aborts are not supported; use httpStatus")
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		if !slices.Contains(grpcStatuses, kind.GrpcStatus) {
			p.notSupportedValue(field+".grpcStatus", kind.GrpcStatus, "must be one of "+strings.Join(grpcStatuses, ", "))
		}
	}
	p.share(field+".percentage", a.Percentage)
}

// share rejects percentages that Envoy, which counts in millionths, would round to
// 0.
func (p *problems) share(field string, percent *networking.Percent) {
	const least = 0.0001
	if value := percent.GetValue(); value > 0 && value < least {
		p.invalidValue(field+".value", value, "must be 0 or at least 0.0001")
	}
}

func (p *problems) httpMirror(field string, r *networking.HTTPRoute) {
	p.destination(field+".mirror", r.Mirror)
	for i, mirror := range r.Mirrors {
		p.destination(indexField(field+".mirrors", i)+".destination", mirror.Destination)
	}
	//lint:ignore SA1019 Old objects have it.
	old := r.GetMirrorPercent() != nil
	if old && r.MirrorPercentage != nil {
		p.suspect(field+".mirrorPercent", "has no effect together with mirrorPercentage")
	}
	if r.Mirror == nil && (old || r.MirrorPercentage != nil) {
		p.warn(field+".mirrorPercentage", "has no effect without mirror; each of mirrors has its own percentage")
	}
}

func (p *problems) httpCors(field string, c *networking.CorsPolicy) {
	for i, origin := range c.GetAllowOrigins() {
		at := indexField(field+".allowOrigins", i)
		p.regexMatch(at, origin)
		if origin.GetExact()+origin.GetPrefix()+origin.GetRegex() == "" {
			p.required(at, "must have one of exact, prefix, regex, and it must not be empty")
		}
	}
	//lint:ignore SA1019 Old objects have it.
	if len(c.GetAllowOrigins()) > 0 && len(c.GetAllowOrigin()) > 0 {
		p.suspect(field+".allowOrigin", "has no effect together with allowOrigins")
	}
}
