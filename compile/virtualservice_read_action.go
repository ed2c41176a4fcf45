package compile

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/envoylimits/headerformat"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// Actions of a VirtualService on a request, field by field.

func virtualRewrite(r *networking.HTTPRewrite) *ir.Rewrite {
	out := &ir.Rewrite{Host: r.GetAuthority(), Path: r.GetUri()}
	if re := r.GetUriRegexRewrite(); re != nil {
		out.Regex = &ir.RegexRewrite{Match: re.GetMatch(), Substitution: re.GetRewrite()}
	}
	if *out == (ir.Rewrite{}) {
		return nil
	}
	return out
}

func (rd *reader) virtualRedirect(r *networking.HTTPRedirect) *ir.Redirect {
	return &ir.Redirect{
		StripQuery: r.GetUri() != "" && rd.pilot().VirtualServiceDefaults,
		Scheme:     r.GetScheme(), Host: r.GetAuthority(), Port: int(r.GetPort()),
		Path: r.GetUri(), Prefix: r.GetPrefixRewrite(), Code: int(r.GetRedirectCode()),
	}
}

func virtualResponse(r *networking.HTTPDirectResponse) *ir.DirectResponse {
	body := r.GetBody().GetString_()
	if bytes := r.GetBody().GetBytes(); len(bytes) > 0 {
		body = string(bytes)
	}
	return &ir.DirectResponse{Status: int(r.GetStatus()), Body: body}
}

func headerOperations(o *networking.Headers_HeaderOperations) ir.HeaderOperations {
	if o == nil {
		return ir.HeaderOperations{}
	}
	return ir.HeaderOperations{
		Append: formatted(sortedHeaders(o.GetAdd())),
		Set:    formatted(sortedHeaders(o.GetSet())),
		Remove: slices.Sorted(slices.Values(o.GetRemove())),
	}
}

// formatted parses values as formats. Most of them are constant text.
func formatted(headers []ir.Header) []ir.Header {
	for i, h := range headers {
		if text, literal := headerformat.Literal(h.Value); literal {
			headers[i].Value = text
		} else {
			headers[i].Format = true
		}
	}
	return headers
}

// checkHeaders reports values that were stored without validation. It returns true
// if there are none.
func (rp *reporter) checkHeaders(ref diag.Ref, r *httpRoute) bool {
	sound := rp.checkHeaderValues(ref, r.field+".headers", r.spec.GetHeaders())
	for i, to := range r.spec.GetRoute() {
		sound = rp.checkHeaderValues(ref, fmt.Sprintf("%s.route[%d].headers", r.field, i), to.GetHeaders()) && sound
	}
	return sound
}

func (rp *reporter) checkHeaderValues(ref diag.Ref, at string, h *networking.Headers) bool {
	sound := true
	for _, change := range []struct {
		field  string
		values map[string]string
	}{
		{"request.set", h.GetRequest().GetSet()}, {"request.add", h.GetRequest().GetAdd()},
		{"response.set", h.GetResponse().GetSet()}, {"response.add", h.GetResponse().GetAdd()},
	} {
		for _, name := range sortedNames(change.values) {
			if err := schema.CheckHeaderValue(name, change.values[name]); err != nil {
				sound = false
				rp.report(diag.Problem{
					Severity: diag.Warning, Reason: diag.FieldInvalid, Code: diag.Closed, Object: ref, Field: fmt.Sprintf("%s.%s[%s]", at, change.field, name),
					Value: fmt.Sprintf("%q", change.values[name]), Message: fmt.Sprintf("the route answers 503: %v", err),
				})
			}
		}
	}
	return sound
}

// Istio's defaults for retries. A request that the service may have acted on is not
// repeated.
const (
	defaultRetryOn = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
	defaultRetries = 2
)

// retryByDefault returns the retries of routes without a rule.
func (rd *reader) retryByDefault() *ir.Retry {
	if rd.pilot().VirtualServiceDefaults {
		return nil
	}
	return &ir.Retry{On: defaultRetryOn, Attempts: defaultRetries, OtherHosts: ir.UntriedUnlessHashed, ByDefault: true}
}

func (rd *reader) virtualRetry(r *networking.HTTPRetry) *ir.Retry {
	out := &ir.Retry{Attempts: int(r.GetAttempts()), PerTryTimeout: r.GetPerTryTimeout().AsDuration()}
	if !rd.pilot().VirtualServiceDefaults {
		out.On = defaultRetryOn
		if r == nil {
			out.Attempts = defaultRetries
		}
	}
	if others := r.GetRetryIgnorePreviousHosts(); others.GetValue() {
		out.OtherHosts = ir.Untried
	} else if others == nil && !rd.pilot().VirtualServiceDefaults {
		out.OtherHosts = ir.UntriedUnlessHashed
	}
	out.OtherLocalities = r.GetRetryRemoteLocalities().GetValue()
	out.BackOff = r.GetBackoff().AsDuration()
	if r.GetRetryOn() != "" {
		out.On, out.StatusCodes = retryConditions(r.GetRetryOn())
	}
	if out.Attempts <= 0 {
		return nil
	}
	return out
}

// retryConditions splits retryOn into Envoy's conditions and the status codes in
// it, which Envoy needs separately with a condition of their own.
func retryConditions(retryOn string) (on string, codes []int) {
	const byCode = "retriable-status-codes"
	var words []string
	for word := range strings.SplitSeq(retryOn, ",") {
		if code, err := strconv.Atoi(word); err == nil {
			codes = append(codes, code)
		} else if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if len(codes) > 0 && !slices.Contains(words, byCode) {
		words = append(words, byCode)
	}
	return strings.Join(words, ","), codes
}

func (p *plan) virtualFault(ref diag.Ref, at string, f *networking.HTTPFaultInjection) *ir.Fault {
	var out ir.Fault
	if d := f.GetDelay(); d.GetFixedDelay().AsDuration() > 0 {
		percent := d.GetPercentage().GetValue()
		if d.GetPercentage() == nil {
			//lint:ignore SA1019 Old objects have it.
			percent = float64(d.GetPercent())
		}
		unset := d.GetPercentage() == nil && percent == 0
		if n := p.faultShare(ref, at+".delay", percent, unset); n > 0 {
			out.Delay, out.DelayPerMillion = d.GetFixedDelay().AsDuration(), n
		}
	}
	if a := f.GetAbort(); a.GetErrorType() != nil {
		if n := p.faultShare(ref, at+".abort", a.GetPercentage().GetValue(), a.GetPercentage() == nil); n > 0 {
			out.AbortPerMillion = n
			out.AbortStatus, out.AbortGRPC = abortStatus(a)
		}
	}
	if out == (ir.Fault{}) {
		return nil
	}
	return &out
}

// abortStatus returns one of the two. A status that is not valid still aborts the
// request.
func abortStatus(a *networking.HTTPFaultInjection_Abort) (http int, grpc *int) {
	if status, known := schema.GRPCStatus(a.GetGrpcStatus()); known {
		return 0, &status
	}
	return cmp.Or(int(a.GetHttpStatus()), serviceUnavailable), nil
}

const serviceUnavailable = http.StatusServiceUnavailable

// faultShare returns how many in a million requests get the fault.
func (p *plan) faultShare(ref diag.Ref, at string, percent float64, unset bool) int {
	switch {
	case unset && p.pilot().UnsetPercentageIsAll:
		p.notHonoured(diag.AsPilot, ref, at+".percentage", "this fault affects every request, because no percentage is given; "+switchHint("unsetPercentageIsAll", "none would"))
		return ir.Million
	case perMillion(percent) == 0:
		p.notHonoured(diag.NoEffect, ref, at+".percentage", "this fault affects no request: without a percentage, it is 0")
	}
	return perMillion(percent)
}

// mirror is a destination of copied requests.
type mirror struct {
	field       string // of the route
	destination *networking.Destination
	percent     float64
}

// mirrorsOf returns the mirrors of a route.
func mirrorsOf(r *networking.HTTPRoute) []mirror {
	var out []mirror
	if r.GetMirror() != nil {
		percent := 100.0
		//lint:ignore SA1019 Old objects have it.
		if old := r.GetMirrorPercent(); old != nil {
			percent = float64(old.GetValue())
		}
		out = append(out, mirror{"mirror", r.GetMirror(), percentOr(r.GetMirrorPercentage(), percent)})
	}
	for i, m := range r.GetMirrors() {
		out = append(out, mirror{fmt.Sprintf("mirrors[%d].destination", i), m.GetDestination(), percentOr(m.GetPercentage(), 100)})
	}
	return out
}

func percentOr(p *networking.Percent, unset float64) float64 {
	if p == nil {
		return unset
	}
	return p.GetValue()
}

func (rp *reporter) virtualCORS(ref diag.Ref, at string, c *networking.CorsPolicy) *ir.CORS {
	if c == nil {
		return nil
	}
	out := &ir.CORS{
		//lint:ignore SA1019 Old objects have it.
		AllowOrigins:     exactOrigins(c.GetAllowOrigin()),
		AllowMethods:     c.GetAllowMethods(),
		AllowHeaders:     c.GetAllowHeaders(),
		ExposeHeaders:    c.GetExposeHeaders(),
		MaxAge:           c.GetMaxAge().AsDuration().Truncate(time.Second),
		AnswerPreflights: c.GetUnmatchedPreflights() == networking.CorsPolicy_IGNORE,
	}
	if len(c.GetAllowOrigins()) > 0 {
		out.AllowOrigins = rp.origins(ref, at+".allowOrigins", c.GetAllowOrigins())
	}
	if c.GetAllowCredentials() != nil {
		allowed := c.GetAllowCredentials().GetValue()
		out.AllowCredentials = &allowed
	}
	return out
}

// origins returns the conditions that Envoy supports. A condition that is left out
// allows no origin.
func (rp *reporter) origins(ref diag.Ref, at string, matches []*networking.StringMatch) []ir.OriginMatch {
	var out []ir.OriginMatch
	for i, m := range matches {
		origin := ir.OriginMatch{Exact: m.GetExact(), Prefix: m.GetPrefix(), Regex: m.GetRegex()}
		err := validRegex(origin.Regex)
		if origin.Regex != "" && err != nil {
			rp.notHonoured(diag.Closed, ref, fmt.Sprintf("%s[%d].regex", at, i), fmt.Sprintf("it allows no origin: it is %v", err))
		} else if origin != (ir.OriginMatch{}) {
			out = append(out, origin)
		}
	}
	return out
}

// switchHint says how to get the correct behaviour instead of Pilot's.
func switchHint(name, effect string) string {
	return fmt.Sprintf("with v1Compatibility.%s false in the mesh settings %s", name, effect)
}
