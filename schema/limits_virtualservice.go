package schema

import (
	"fmt"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

func virtualServiceLimits(s *networking.VirtualService) diag.List {
	var p problems
	for i, r := range s.GetHttp() {
		at := indexField("spec.http", i)
		p.routeLimits(at, r)
		for j, m := range r.GetMatch() {
			p.matchLimits(indexField(at+".match", j), m)
		}
	}
	for i, r := range s.GetTcp() {
		for j, m := range r.GetMatch() {
			if m.GetSourceSubnet() != "" {
				p.warnOf(diag.Closed, fmt.Sprintf("spec.tcp[%d].match[%d].sourceSubnet", i, j), "connections that meet the other conditions fail: callers are distinguished only by labels")
			}
		}
	}
	return p.list
}

// closedMatch begins messages about conditions that cannot be evaluated.
const closedMatch = "requests that meet the other conditions are answered with 503: "

func (p *problems) matchLimits(at string, m *networking.HTTPMatchRequest) {
	p.claimLimits(at+".headers", m.GetHeaders())
	p.claimLimits(at+".withoutHeaders", m.GetWithoutHeaders())
	for _, name := range slices.Sorted(maps.Keys(m.GetWithoutHeaders())) {
		if !IsClaim(name) && FitsEmpty(m.GetWithoutHeaders()[name]) {
			p.warnOf(diag.Closed, keyField(at+".withoutHeaders", name), closedMatch+"proxies do not distinguish an empty header from a missing one; use {} to require absence")
		}
	}
}

func (p *problems) claimLimits(at string, conditions map[string]*networking.StringMatch) {
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		if IsClaim(name) {
			p.warnOf(diag.Closed, keyField(at, name), closedMatch+"claims of tokens are not known")
		}
	}
}

func (p *problems) routeLimits(at string, r *networking.HTTPRoute) {
	p.notFollowed(at, []unmet{
		{r.GetRewrite().GetUriRegexRewrite() != nil && !Rewrites(r.GetRewrite().GetUriRegexRewrite()), "rewrite.uriRegexRewrite",
			"the route answers 503: rewrite must refer to groups that match has, and to nothing else with a backslash"},
		{r.GetRedirect() != nil && !Redirects(r.GetRedirect()), "redirect", "the route answers 503: a redirect must change the URL, and answer 301, 302, 303, 307 or 308"},
	})
	abort := r.GetFault().GetAbort()
	p.notFollowed(at+".fault", []unmet{
		{abort.GetHttp2Error() != "", "abort", "requests are aborted with HTTP code 503: proxies do not support such errors; use httpStatus or grpcStatus"},
		{r.GetFault().GetDelay().GetExponentialDelay() != nil, "delay.exponentialDelay", "delays are fixed; use fixedDelay"},
	})
}
