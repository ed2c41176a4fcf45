package schema

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
)

// RouteRule is the spec of the kind RouteRule. It says which requests to a service
// go to which of its versions, and how they are changed.
type RouteRule struct {
	Destination *IstioService `json:"destination"`
	// Precedence orders the rules of one destination, higher first.
	Precedence       int32               `json:"precedence"`
	Match            *MatchCondition     `json:"match"`
	Route            []DestinationWeight `json:"route"`
	Redirect         *HTTPRedirect       `json:"redirect"`
	Rewrite          *HTTPRewrite        `json:"rewrite"`
	WebsocketUpgrade bool                `json:"websocketUpgrade"`
	HTTPReqTimeout   *HTTPTimeout        `json:"httpReqTimeout"`
	HTTPReqRetries   *HTTPRetry          `json:"httpReqRetries"`
	HTTPFault        *HTTPFaultInjection `json:"httpFault"`
	// L4Fault is rejected by validation. The field only records its presence.
	L4Fault       *struct{}         `json:"l4Fault"`
	Mirror        *IstioService     `json:"mirror"`
	CorsPolicy    *CorsPolicy       `json:"corsPolicy"`
	AppendHeaders map[string]string `json:"appendHeaders"`
}

// DestinationWeight is one of the versions among which a RouteRule divides
// requests.
type DestinationWeight struct {
	// Destination, if nil, is that of the rule.
	Destination *IstioService     `json:"destination"`
	Labels      map[string]string `json:"labels"`
	// Weight is in percent. A single entry with weight 0 gets everything.
	Weight int32 `json:"weight"`
}

// HTTPRedirect answers with a redirect; at least one field is set.
type HTTPRedirect struct {
	URI       string `json:"uri"`
	Authority string `json:"authority"`
}

// HTTPRewrite changes the request before it is forwarded; at least one field
// is set.
type HTTPRewrite struct {
	URI       string `json:"uri"`
	Authority string `json:"authority"`
}

// HTTPTimeout limits the whole request, retries included.
type HTTPTimeout struct {
	SimpleTimeout *SimpleTimeout `json:"simpleTimeout"`
}

// SimpleTimeout is the only kind of timeout.
type SimpleTimeout struct {
	Timeout metav1.Duration `json:"timeout"` // whole milliseconds, at least 1
}

// HTTPRetry says how often a failed request is retried.
type HTTPRetry struct {
	SimpleRetry *SimpleRetry `json:"simpleRetry"`
}

// SimpleRetry is the only kind of retry.
type SimpleRetry struct {
	Attempts      int32           `json:"attempts"`      // 0 is none
	PerTryTimeout metav1.Duration `json:"perTryTimeout"` // whole milliseconds, at least 1
}

// HTTPFaultInjection delays requests, answers them with an error, or both.
type HTTPFaultInjection struct {
	Delay *HTTPDelay `json:"delay"`
	Abort *HTTPAbort `json:"abort"`
}

// HTTPDelay delays a share of the requests.
type HTTPDelay struct {
	Percent          float64          `json:"percent"` // 0..100; the fraction is cut, 0 is no delay
	FixedDelay       metav1.Duration  `json:"fixedDelay"`
	ExponentialDelay *metav1.Duration `json:"exponentialDelay"` // rejected by validation
}

// HTTPAbort answers a share of the requests instead of forwarding them.
type HTTPAbort struct {
	Percent    float64 `json:"percent"`    // 0..100; the fraction is cut, 0 is no abort
	HTTPStatus int32   `json:"httpStatus"` // 0 is no abort
	GRPCStatus *string `json:"grpcStatus"` // rejected by validation
}

// CorsPolicy says what browsers of other origins may do.
type CorsPolicy struct {
	AllowOrigin      []string         `json:"allowOrigin"`
	AllowMethods     []string         `json:"allowMethods"`
	AllowHeaders     []string         `json:"allowHeaders"`
	ExposeHeaders    []string         `json:"exposeHeaders"`
	MaxAge           *metav1.Duration `json:"maxAge"` // whole seconds
	AllowCredentials *bool            `json:"allowCredentials"`
}

func init() {
	register(&Kind{
		Group: configGroup, Version: "v1alpha2", OldVersions: []string{"v1alpha1"},
		Kind: "RouteRule", Plural: "routerules", Singular: "routerule",
		Dashed: "route-rule", ShortNames: []string{"rr"},
		Doc: "A RouteRule says which requests to a service go to which versions of it, " +
			"and what happens to them on the way: timeouts, retries, faults, redirects, rewrites. " +
			"Among the rules for one service that match, the one with the highest precedence wins.",
		Columns: []Column{
			stringColumn("Destination", "The service that the rule is for.", func(r *RouteRule) string { return r.Destination.String() }),
			{Name: "Precedence", Type: "integer", Description: "Higher goes first.",
				Cell: cell(func(r *RouteRule) string { return strconv.Itoa(int(r.Precedence)) })},
			listColumn("Routes", "Where requests go, with weights in percent.", " ", routeTexts),
			wideColumn("Match", "The conditions on requests.", func(r *RouteRule) string { return r.Match.String() }),
		},
		selectable: selectableService(func(r *RouteRule) *IstioService { return r.Destination }),
		spec:       inJSON[RouteRule](),
		check:      checkAs(checkRouteRule),
		limits:     checkAs(routeRuleLimits),
	})
}

func checkRouteRule(r *RouteRule) diag.List {
	var p problems
	p.service("spec.destination", r.Destination)
	p.noLabels("spec.destination", r.Destination)
	p.match("spec.match", r.Match)
	p.routes("spec.route", r.Route)
	p.redirect(r)
	if r.Rewrite != nil && r.Rewrite.URI == "" && r.Rewrite.Authority == "" {
		p.required("spec.rewrite", "must set uri, authority or both")
	}
	p.fault("spec.httpFault", r.HTTPFault)
	if r.L4Fault != nil {
		p.notSupported("spec.l4Fault", "faults on TCP connections are not supported")
	}
	p.service("spec.mirror", r.Mirror)
	return p.list
}

func (p *problems) redirect(r *RouteRule) {
	if r.Redirect == nil {
		return
	}
	if r.Redirect.URI == "" && r.Redirect.Authority == "" {
		p.required("spec.redirect", "must set uri, authority or both")
	}
	for _, other := range []struct {
		field string
		set   bool
	}{
		{"route", len(r.Route) > 0},
		{"httpFault", r.HTTPFault != nil},
		{"rewrite", r.Rewrite != nil},
		{"websocketUpgrade", r.WebsocketUpgrade},
	} {
		if other.set {
			p.forbidden("spec."+other.field, "cannot be given together with redirect: a redirected request is never forwarded; remove one of the two")
		}
	}
}

// routes leaves the range of each weight to the JSON Schema.
func (p *problems) routes(field string, routes []DestinationWeight) {
	var sum int64
	for i, r := range routes {
		at := fmt.Sprintf("%s[%d]", field, i)
		p.advise(func(p *problems) { p.service(at+".destination", r.Destination) },
			"is stored, but the entry leads nowhere")
		p.emptyLabels(at, r.Labels)
		sum += int64(r.Weight)
	}
	switch {
	case len(routes) == 0, len(routes) == 1 && sum == 0:
	case sum != 100:
		p.invalid(field, fmt.Sprintf("the weights must sum to 100, found %d", sum))
	}
}

func (p *problems) fault(field string, f *HTTPFaultInjection) {
	if f == nil {
		return
	}
	if f.Delay != nil && f.Delay.ExponentialDelay != nil {
		p.notSupported(field+".delay.exponentialDelay", "delays of random length are not supported; use fixedDelay")
	}
	if f.Abort != nil && f.Abort.GRPCStatus != nil {
		p.notSupported(field+".abort.grpcStatus", "gRPC aborts are not supported; use httpStatus")
	}
	if f.Delay != nil && f.Delay.Percent == 0 {
		p.warn(field+".delay.percent", "0, which is also the default, delays no request")
	}
	if f.Abort != nil && (f.Abort.Percent == 0 || f.Abort.HTTPStatus == 0) {
		p.warn(field+".abort", "aborts no request: percent and httpStatus must both be above 0")
	}
}

func routeTexts(r *RouteRule) []string {
	if r.Redirect != nil {
		return []string{"redirect " + r.Redirect.Authority + r.Redirect.URI}
	}
	parts := make([]string, len(r.Route))
	for i, w := range r.Route {
		parts[i] = labelsText(w.Labels)
		if w.Destination != nil {
			parts[i] = w.Destination.String()
		}
		if len(r.Route) > 1 {
			parts[i] += fmt.Sprintf("=%d%%", w.Weight)
		}
	}
	return orAll(parts)
}

// orAll completes texts of versions for a table, where no labels means "all".
func orAll(parts []string) []string {
	if len(parts) == 0 {
		return []string{"all"}
	}
	for i, part := range parts {
		if part == "" || strings.HasPrefix(part, "=") {
			parts[i] = "all" + part
		}
	}
	return parts
}
