package evaluator

import (
	"net/http"
	"regexp"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// The names by which routes configure these filters.
const (
	corsFilter  = "envoy.filters.http.cors"
	faultFilter = "envoy.filters.http.fault"
)

func (r *v3Reader) table(at string, t *routev3.RouteConfiguration) []*VirtualHost {
	r.only(at, t, "name", "virtual_hosts", "validate_clusters", "ignore_port_in_host_matching")
	out := []*VirtualHost{}
	for _, h := range t.GetVirtualHosts() {
		r.only(at, h, "name", "domains", "routes")
		host := &VirtualHost{Name: h.GetName(), Domains: h.GetDomains()}
		for _, route := range h.GetRoutes() {
			host.Routes = append(host.Routes, r.route(at+": "+h.GetName(), route))
		}
		out = append(out, host)
	}
	return out
}

func (r *v3Reader) route(at string, from *routev3.Route) *Route {
	r.only(at, from, "name", "stat_prefix", "match", "route", "redirect", "direct_response", "decorator", "typed_per_filter_config",
		"request_headers_to_add", "request_headers_to_remove", "response_headers_to_add", "response_headers_to_remove")
	out := &Route{}
	if d := from.GetDecorator(); d != nil {
		r.only(at, d, "operation")
		out.Operation = d.GetOperation()
	}
	r.match(at, from.GetMatch(), out)
	if to := from.GetRedirect(); to != nil {
		r.only(at, to, "scheme_redirect", "host_redirect", "port_redirect", "path_redirect", "prefix_rewrite", "strip_query", "response_code")
		out.Redirect = &Redirect{
			Scheme: to.GetSchemeRedirect(), Host: to.GetHostRedirect(), Port: int(to.GetPortRedirect()),
			Path: to.GetPathRedirect(), Prefix: to.GetPrefixRewrite(), KeepQuery: !to.GetStripQuery(),
			Code: redirectCodes[to.GetResponseCode()],
		}
	}
	if answer := from.GetDirectResponse(); answer != nil {
		r.only(at, answer, "status", "body")
		if answer.GetBody() != nil {
			r.only(at, answer.GetBody(), "inline_bytes")
		}
		out.Response = &Response{Status: int(answer.GetStatus()), Body: string(answer.GetBody().GetInlineBytes())}
	}
	if action := from.GetRoute(); action != nil {
		r.forward(at, action, out)
	}
	out.Change = r.headers(at, from)
	r.filterConfig(at, from, out)
	return out
}

var redirectCodes = map[routev3.RedirectAction_RedirectResponseCode]int{
	routev3.RedirectAction_MOVED_PERMANENTLY:  http.StatusMovedPermanently,
	routev3.RedirectAction_FOUND:              http.StatusFound,
	routev3.RedirectAction_SEE_OTHER:          http.StatusSeeOther,
	routev3.RedirectAction_TEMPORARY_REDIRECT: http.StatusTemporaryRedirect,
	routev3.RedirectAction_PERMANENT_REDIRECT: http.StatusPermanentRedirect,
}

// headerChanges is common to a route and to one of its shares.
type headerChanges interface {
	GetRequestHeadersToAdd() []*corev3.HeaderValueOption
	GetRequestHeadersToRemove() []string
	GetResponseHeadersToAdd() []*corev3.HeaderValueOption
	GetResponseHeadersToRemove() []string
}

func (r *v3Reader) headers(at string, from headerChanges) Headers {
	out := Headers{Remove: from.GetRequestHeadersToRemove(), ResponseRemove: from.GetResponseHeadersToRemove()}
	out.Add, out.Set = r.values(at, from.GetRequestHeadersToAdd())
	out.ResponseAdd, out.ResponseSet = r.values(at, from.GetResponseHeadersToAdd())
	return out
}

// operator matches what Envoy substitutes, but not doubled percent signs.
var operator = regexp.MustCompile(`^([^%]|%%)*%[A-Z]+`)

func (r *v3Reader) values(at string, options []*corev3.HeaderValueOption) (add, set []Header) {
	for _, h := range options {
		r.only(at, h, "header", "append_action", "keep_empty_value")
		r.only(at, h.GetHeader(), "key", "value")
		value := Header{Name: h.GetHeader().GetKey(), Value: h.GetHeader().GetValue()}
		if value.Format = operator.MatchString(value.Value); !value.Format {
			value.Value = r.literal(at, value.Value)
		}
		switch h.GetAppendAction() {
		case corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD:
			add = append(add, value)
		case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
			set = append(set, value)
		default:
			r.fail(at, "%s of a header is not known", h.GetAppendAction())
		}
	}
	return add, set
}

func (r *v3Reader) forward(at string, action *routev3.RouteAction, out *Route) {
	r.only(at, action, "cluster", "weighted_clusters", "prefix_rewrite", "regex_rewrite", "host_rewrite_literal", "timeout",
		"retry_policy", "request_mirror_policies", "upgrade_configs", "hash_policy")
	for _, policy := range action.GetHashPolicy() {
		if out.HashHeader == "" {
			out.HashHeader = policy.GetHeader().GetHeaderName()
		}
	}
	if c := action.GetCluster(); c != "" {
		out.Weights = []Weight{{Cluster: c, Weight: 100}}
	}
	if split := action.GetWeightedClusters(); split != nil {
		r.only(at, split, "clusters")
		for _, c := range split.GetClusters() {
			r.only(at, c, "name", "weight", "host_rewrite_literal",
				"request_headers_to_add", "request_headers_to_remove", "response_headers_to_add", "response_headers_to_remove")
			out.Weights = append(out.Weights, Weight{c.GetName(), int(c.GetWeight().GetValue()), c.GetHostRewriteLiteral(), r.headers(at, c)})
		}
	}
	out.PrefixRewrite, out.HostRewrite = action.GetPrefixRewrite(), action.GetHostRewriteLiteral()
	if re := action.GetRegexRewrite(); re != nil {
		r.only(at, re, "pattern", "substitution")
		r.only(at, re.GetPattern(), "regex")
		out.RegexRewrite, out.Substitution = r.substitution(at, re.GetPattern().GetRegex(), re.GetSubstitution())
	}
	out.Timeout = duration(action.GetTimeout(), routeTimeout)
	if p := action.GetRetryPolicy(); p != nil {
		out.Retry = r.retry(at, p)
	}
	for _, m := range action.GetRequestMirrorPolicies() {
		r.only(at, m, "cluster", "runtime_fraction")
		to := Mirror{m.GetCluster(), allRequests}
		if f := m.GetRuntimeFraction(); f != nil {
			r.only(at, f, "default_value")
			to.PerMillion = r.perMillion(at, f.GetDefaultValue())
		}
		out.Mirrors = append(out.Mirrors, to)
	}
	for _, u := range action.GetUpgradeConfigs() {
		r.only(at, u, "upgrade_type", "enabled")
		r.require(u.GetUpgradeType() == "websocket" && u.GetEnabled() != nil, at, "upgrade %v is not known", u)
		enabled := u.GetEnabled().GetValue()
		out.WebSocket = &enabled
	}
}

func (r *v3Reader) retry(at string, p *routev3.RetryPolicy) *Retry {
	r.only(at, p, "retry_on", "retriable_status_codes", "num_retries", "per_try_timeout", "retry_back_off",
		"retry_host_predicate", "host_selection_retry_max_attempts", "retry_priority")
	out := &Retry{
		On: p.GetRetryOn(), StatusCodes: p.GetRetriableStatusCodes(), Attempts: number(p.GetNumRetries(), 1), PerTryTimeout: duration(p.GetPerTryTimeout(), 0),
		BackOff: duration(p.GetRetryBackOff().GetBaseInterval(), 0), OtherPriorities: p.GetRetryPriority() != nil,
	}
	if b := p.GetRetryBackOff(); b != nil {
		r.only(at, b, "base_interval")
	}
	for _, predicate := range p.GetRetryHostPredicate() {
		r.require(predicate.GetName() == "envoy.retry_host_predicates.previous_hosts" && p.GetHostSelectionRetryMaxAttempts() > 0, at, "predicate %v is not known", predicate)
		out.OtherHosts = true
	}
	return out
}

// filterConfig reads the settings of the cors and fault filters for this route.
func (r *v3Reader) filterConfig(at string, from *routev3.Route, out *Route) {
	for name, config := range from.GetTypedPerFilterConfig() {
		switch name {
		case corsFilter:
			policy := &corsv3.CorsPolicy{}
			if r.unpack(at, config, policy) {
				out.CORS = r.cors(at, policy)
			}
		case faultFilter:
			fault := &faultv3.HTTPFault{}
			if r.unpack(at, config, fault) {
				out.Fault = r.fault(at, fault)
			}
		default:
			r.fail(at, "config of filter %s is not known", name)
		}
	}
}

func (r *v3Reader) cors(at string, p *corsv3.CorsPolicy) *CORS {
	r.only(at, p, "allow_origin_string_match", "allow_methods", "allow_headers", "expose_headers", "max_age", "allow_credentials", "forward_not_matching_preflights")
	out := &CORS{
		Methods: p.GetAllowMethods(), AllowHeaders: p.GetAllowHeaders(), ExposeHeaders: p.GetExposeHeaders(),
		MaxAge: p.GetMaxAge(), Credentials: p.GetAllowCredentials().GetValue(),
		Keep: p.GetForwardNotMatchingPreflights() != nil && !p.GetForwardNotMatchingPreflights().GetValue(),
	}
	for _, m := range p.GetAllowOriginStringMatch() {
		r.only(at, m, "exact", "prefix", "safe_regex")
		switch m.GetMatchPattern().(type) {
		case *matcherv3.StringMatcher_Prefix:
			out.OriginsBeginning = append(out.OriginsBeginning, m.GetPrefix())
		case *matcherv3.StringMatcher_SafeRegex:
			out.OriginsMatching = append(out.OriginsMatching, m.GetSafeRegex().GetRegex())
		default:
			out.Origins = append(out.Origins, m.GetExact())
		}
	}
	return out
}
