package evaluator_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

const closedRegistry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a}
spec:
  hosts: [a.default.svc.cluster.local]
  addresses: [10.0.0.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.1}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: caller}
spec:
  hosts: [caller.default.svc.cluster.local]
  addresses: [10.0.0.9]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.9, labels: {app: caller}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: g}
spec:
  servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: other}
spec: {http: [{directResponse: {status: 403}}]}
---
`

const toA = `route: [{destination: {host: a.default.svc.cluster.local}}]`

// guarded is an http route with one field in use, before one for all requests.
type guarded struct {
	route string
	// done reports whether the field acts on the request. For nil nothing can be
	// seen of it, and whoever writes it must be warned.
	done func(evaluator.Outcome) bool
	// shaping: where it cannot be followed the route acts without it.
	shaping bool
}

func denied(o evaluator.Outcome) bool { return o.Status == http.StatusForbidden }

// condition is a deny route with one condition, which the request fulfils.
func condition(text string) guarded {
	return guarded{route: "{match: [" + text + "], directResponse: {status: 403}}", done: denied}
}

func action(text string, done func(evaluator.Outcome) bool) guarded {
	return guarded{route: "{match: [{uri: {prefix: /guard}}], " + text + "}", done: done}
}

func forwarding(text string, done func(evaluator.Outcome) bool) guarded {
	return action(toA+", "+text, done)
}

func destined(text string, done func(evaluator.Outcome) bool) guarded {
	return action("route: [{destination: {host: a.default.svc.cluster.local}, "+text+"}]", done)
}

func location(want string) func(evaluator.Outcome) bool {
	return func(o evaluator.Outcome) bool { return o.Location == want }
}

func answers(status int, body string) func(evaluator.Outcome) bool {
	return func(o evaluator.Outcome) bool { return o.Status == status && o.Body == body }
}

func aborts(o evaluator.Outcome) bool {
	return slices.ContainsFunc(o.Shares[0].Faults, func(f evaluator.Fault) bool {
		return f.AbortPerMillion == 1_000_000 && (f.AbortStatus >= 400 || f.AbortGRPC > 0)
	})
}

func delays(o evaluator.Outcome) bool {
	return slices.ContainsFunc(o.Shares[0].Faults, func(f evaluator.Fault) bool { return f.Delay > 0 && f.DelayPerMillion == 1_000_000 })
}

func shaping(g guarded) guarded {
	g.shaping = true
	return g
}

func mirrored(o evaluator.Outcome) bool { return mirroredTo(o, 1_000_000) }

func mirroredHalf(o evaluator.Outcome) bool { return mirroredTo(o, 500_000) }

func mirroredTo(o evaluator.Outcome, perMillion int) bool {
	return len(o.Mirrors) == 1 && o.Mirrors[0].PerMillion == perMillion
}

func retried(o evaluator.Outcome) bool { return o.Retry != nil }

func retriedWith(seen func(evaluator.Retry) bool) func(evaluator.Outcome) bool {
	return func(o evaluator.Outcome) bool { return retried(o) && seen(*o.Retry) }
}

func withCORS(seen func(*evaluator.CORS) bool) func(evaluator.Outcome) bool {
	return func(o evaluator.Outcome) bool { return o.CORS != nil && seen(o.CORS) }
}

func routeChange(seen func(evaluator.Headers) bool) func(evaluator.Outcome) bool {
	return func(o evaluator.Outcome) bool { return seen(o.Change) }
}

func shareChange(seen func(evaluator.Headers) bool) func(evaluator.Outcome) bool {
	return func(o evaluator.Outcome) bool { return len(o.Shares) == 1 && seen(o.Shares[0].Change) }
}

func adds(h evaluator.Headers) bool           { return len(h.Add) > 0 }
func sets(h evaluator.Headers) bool           { return len(h.Set) > 0 }
func removes(h evaluator.Headers) bool        { return slices.Contains(h.Remove, "x-secret") }
func addsToResponse(h evaluator.Headers) bool { return len(h.ResponseAdd) > 0 }
func setsInResponse(h evaluator.Headers) bool { return len(h.ResponseSet) > 0 }
func removesFromIt(h evaluator.Headers) bool  { return slices.Contains(h.ResponseRemove, "x-secret") }
func reaches(o evaluator.Outcome) bool        { return len(o.Shares) > 0 }
func hostRewritten(o evaluator.Outcome) bool  { return o.Host == "other.example" }
func timed(o evaluator.Outcome) bool          { return o.Timeout > 0 }
func perTry(o evaluator.Outcome) bool         { return o.Retry != nil && o.Retry.PerTryTimeout > 0 }
func onReset(o evaluator.Outcome) bool        { return o.Retry != nil && o.Retry.On == "reset" }
func origins(c *evaluator.CORS) bool          { return len(c.Origins) > 0 }
func methods(c *evaluator.CORS) bool          { return c.Methods != "" }
func allowedHeaders(c *evaluator.CORS) bool   { return c.AllowHeaders != "" }
func exposedHeaders(c *evaluator.CORS) bool   { return c.ExposeHeaders != "" }
func remembered(c *evaluator.CORS) bool       { return c.MaxAge != "" }
func withCredentials(c *evaluator.CORS) bool  { return c.Credentials }

const (
	everyOrigin = `allowOrigins: [{exact: "http://o.example"}]`
	always      = `percentage: {value: 100}`
	abortNow    = `httpStatus: 403, ` + always
)

// guards has every field of an http route. What an object may newly say needs
// an entry here, and with it an answer to the question what becomes of it.
var guards = map[string]guarded{
	"name":                  action(`name: n, directResponse: {status: 403}`, denied),
	"match.name":            condition(`{name: n, uri: {prefix: /guard}}`),
	"match.uri":             condition(`{uri: {regex: "/gu[a]rd.*"}}`),
	"match.ignoreUriCase":   condition(`{uri: {prefix: /GUARD}, ignoreUriCase: true}`),
	"match.scheme":          condition(`{scheme: {exact: http}}`),
	"match.method":          condition(`{method: {exact: GET}}`),
	"match.authority":       condition(`{authority: {prefix: a.}}`),
	"match.headers":         condition(`{headers: {x-user: {exact: ann}}}`),
	"match.withoutHeaders":  condition(`{withoutHeaders: {x-token: {}}}`),
	"match.queryParams":     condition(`{queryParams: {q: {exact: "1"}}}`),
	"match.port":            condition(`{port: 80}`),
	"match.sourceLabels":    condition(`{sourceLabels: {app: caller}}`),
	"match.sourceNamespace": condition(`{sourceNamespace: default}`),
	"match.gateways":        condition(`{gateways: [mesh]}`),
	"match.statPrefix":      condition(`{uri: {prefix: /guard}, statPrefix: s}`),

	"redirect.uri": action(`redirect: {uri: /new}`, func(o evaluator.Outcome) bool {
		return strings.HasPrefix(o.Location, "http://a.default.svc.cluster.local/new")
	}),
	"redirect.authority":     action(`redirect: {authority: b.example}`, location("http://b.example/guard/x?q=1")),
	"redirect.scheme":        action(`redirect: {scheme: https}`, location("https://a.default.svc.cluster.local/guard/x?q=1")),
	"redirect.port":          action(`redirect: {port: 81}`, location("http://a.default.svc.cluster.local:81/guard/x?q=1")),
	"redirect.derivePort":    action(`redirect: {derivePort: FROM_REQUEST_PORT}`, location("http://a.default.svc.cluster.local:80/guard/x?q=1")),
	"redirect.prefixRewrite": action(`redirect: {prefixRewrite: /p}`, location("http://a.default.svc.cluster.local/p/x?q=1")),
	"redirect.redirectCode":  action(`redirect: {uri: /new, redirectCode: 307}`, func(o evaluator.Outcome) bool { return o.Status == 307 }),

	"directResponse.status":      action(`directResponse: {status: 403}`, denied),
	"directResponse.body.string": action(`directResponse: {status: 401, body: {string: nothing}}`, answers(401, "nothing")),
	"directResponse.body.bytes":  action(`directResponse: {status: 401, body: {bytes: bm8=}}`, answers(401, "no")),

	"delegate.name":      action(`delegate: {name: other}`, denied),
	"delegate.namespace": action(`delegate: {name: other, namespace: default}`, denied),

	"route.destination": action(`route: [{destination: {host: nobody.example}}]`, func(o evaluator.Outcome) bool { return o.Shares[0].Cluster == "out.nobody.example|http" }),
	"route.weight": action(`route: [{destination: {host: nobody.example}, weight: 1}, {destination: {host: a.default.svc.cluster.local}, weight: 0}]`, func(o evaluator.Outcome) bool {
		return len(o.Shares) == 1 && o.Shares[0].Cluster == "out.nobody.example|http"
	}),
	"route.headers.request.add":     destined(`headers: {request: {add: {x: y}}}`, shareChange(adds)),
	"route.headers.request.set":     destined(`headers: {request: {set: {x: y}}}`, shareChange(sets)),
	"route.headers.request.remove":  destined(`headers: {request: {remove: [x-secret]}}`, shareChange(removes)),
	"route.headers.response.add":    destined(`headers: {response: {add: {x: y}}}`, shareChange(addsToResponse)),
	"route.headers.response.set":    destined(`headers: {response: {set: {x: y}}}`, shareChange(setsInResponse)),
	"route.headers.response.remove": destined(`headers: {response: {remove: [x-secret]}}`, shareChange(removesFromIt)),

	"headers.request.add":     forwarding(`headers: {request: {add: {x: y}}}`, routeChange(adds)),
	"headers.request.set":     forwarding(`headers: {request: {set: {x: y}}}`, routeChange(sets)),
	"headers.request.remove":  forwarding(`headers: {request: {remove: [x-secret]}}`, routeChange(removes)),
	"headers.response.add":    forwarding(`headers: {response: {add: {x: y}}}`, routeChange(addsToResponse)),
	"headers.response.set":    forwarding(`headers: {response: {set: {x: y}}}`, routeChange(setsInResponse)),
	"headers.response.remove": forwarding(`headers: {response: {remove: [x-secret]}}`, routeChange(removesFromIt)),

	"rewrite.uri":                     forwarding(`rewrite: {uri: /other}`, func(o evaluator.Outcome) bool { return o.Path == "/other/x?q=1" }),
	"rewrite.authority":               forwarding(`rewrite: {authority: other.example}`, hostRewritten),
	"rewrite.uriRegexRewrite.match":   forwarding(`rewrite: {uriRegexRewrite: {match: "gu(.)rd", rewrite: "\\1"}}`, func(o evaluator.Outcome) bool { return o.Path == "/a/x?q=1" }),
	"rewrite.uriRegexRewrite.rewrite": forwarding(`rewrite: {uriRegexRewrite: {match: "gu(.)rd", rewrite: "\\2"}}`, denied),

	"timeout":                          forwarding(`timeout: 1s`, timed),
	"retries.attempts":                 forwarding(`retries: {attempts: 2}`, retried),
	"retries.perTryTimeout":            forwarding(`retries: {attempts: 2, perTryTimeout: 1s}`, perTry),
	"retries.retryOn":                  forwarding(`retries: {attempts: 2, retryOn: reset}`, onReset),
	"retries.retryRemoteLocalities":    shaping(forwarding(`retries: {attempts: 2, retryRemoteLocalities: true}`, retriedWith(func(r evaluator.Retry) bool { return r.OtherPriorities }))),
	"retries.retryIgnorePreviousHosts": forwarding(`retries: {attempts: 2, retryIgnorePreviousHosts: false}`, retriedWith(func(r evaluator.Retry) bool { return !r.OtherHosts })),
	"retries.backoff":                  shaping(forwarding(`retries: {attempts: 2, backoff: 1s}`, retriedWith(func(r evaluator.Retry) bool { return r.BackOff == time.Second }))),

	"fault.delay.fixedDelay":       forwarding(`fault: {delay: {fixedDelay: 1s, `+always+`}}`, delays),
	"fault.delay.percent":          forwarding(`fault: {delay: {fixedDelay: 1s, percent: 100}}`, delays),
	"fault.delay.percentage":       forwarding(`fault: {delay: {fixedDelay: 1s, `+always+`}}`, delays),
	"fault.delay.exponentialDelay": {}, // refused
	"fault.abort.httpStatus":       forwarding(`fault: {abort: {`+abortNow+`}}`, aborts),
	"fault.abort.percentage":       forwarding(`fault: {abort: {`+abortNow+`}}`, aborts),
	"fault.abort.grpcStatus":       forwarding(`fault: {abort: {grpcStatus: PERMISSION_DENIED, `+always+`}}`, aborts),
	"fault.abort.http2Error":       {}, // refused

	"mirror":              forwarding(`mirror: {host: a.default.svc.cluster.local}`, mirrored),
	"mirrorPercent":       shaping(forwarding(`mirror: {host: a.default.svc.cluster.local}, mirrorPercent: 50`, mirroredHalf)),
	"mirrorPercentage":    shaping(forwarding(`mirror: {host: a.default.svc.cluster.local}, mirrorPercentage: {value: 50}`, mirroredHalf)),
	"mirrors.destination": forwarding(`mirrors: [{destination: {host: a.default.svc.cluster.local}}]`, mirrored),
	"mirrors.percentage":  shaping(forwarding(`mirrors: [{destination: {host: a.default.svc.cluster.local}, percentage: {value: 50}}]`, mirroredHalf)),

	"corsPolicy.allowOrigin":         forwarding(`corsPolicy: {allowOrigin: ["http://o.example"]}`, withCORS(origins)),
	"corsPolicy.allowOrigins":        forwarding(`corsPolicy: {`+everyOrigin+`}`, withCORS(origins)),
	"corsPolicy.allowMethods":        forwarding(`corsPolicy: {`+everyOrigin+`, allowMethods: [GET]}`, withCORS(methods)),
	"corsPolicy.allowHeaders":        forwarding(`corsPolicy: {`+everyOrigin+`, allowHeaders: [x]}`, withCORS(allowedHeaders)),
	"corsPolicy.exposeHeaders":       forwarding(`corsPolicy: {`+everyOrigin+`, exposeHeaders: [x]}`, withCORS(exposedHeaders)),
	"corsPolicy.maxAge":              forwarding(`corsPolicy: {`+everyOrigin+`, maxAge: 10s}`, withCORS(remembered)),
	"corsPolicy.allowCredentials":    forwarding(`corsPolicy: {`+everyOrigin+`, allowCredentials: true}`, withCORS(withCredentials)),
	"corsPolicy.unmatchedPreflights": shaping(forwarding(`corsPolicy: {`+everyOrigin+`, unmatchedPreflights: IGNORE}`, withCORS(func(c *evaluator.CORS) bool { return c.Keep }))),
}

// guardedRequest is taken by every entry of guards.
var guardedRequest = evaluator.Request{
	Destination: netip.MustParseAddrPort("10.0.0.1:80"), Captured: true,
	Method: "GET", Host: "a.default.svc.cluster.local", Path: "/guard/x?q=1",
	Headers: map[string]string{"x-user": "ann", "x-secret": "s"},
}

// TestNothingFailsOpen: each field of an http route is followed, or the requests
// of the route get 503; nothing goes on to the route after it as if the field
// had not been written. What cannot be seen of a request is warned of.
func TestNothingFailsOpen(t *testing.T) {
	fields := map[string]bool{}
	leaves((&networking.HTTPRoute{}).ProtoReflect().Descriptor(), "", fields)
	for field := range fields {
		if _, ok := guards[field]; !ok {
			t.Errorf("spec.http[].%s is new: say here what becomes of it", field)
		}
	}
	for field, g := range guards {
		t.Run(field, func(t *testing.T) {
			if !fields[field] {
				t.Fatal("there is no such field")
			}
			if g.route != "" {
				testGuard(t, g)
			}
		})
	}
}

func testGuard(t *testing.T, g guarded) {
	text := fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec:\n  hosts: [a.default.svc.cluster.local]\n  http:\n  - %s\n  - {%s}\n", g.route, toA)
	objs := decoded(t, closedRegistry+text)
	warned := len(schema.OwnOf(objs[len(objs)-1]).Warnings) > 0
	s := spellFor(t, "sidecar~10.1.0.9~caller.default~default.svc.cluster.local", objs)
	for version, p := range map[string]*evaluator.Proxy{"v1": s.v1, "v3": s.v3} {
		got := answered(p.Evaluate(guardedRequest))
		switch {
		case got.Status == http.StatusServiceUnavailable:
			if !warned && len(s.complaints) == 0 {
				t.Errorf("%s: closed, and nobody is told", version)
			}
		case g.done == nil:
			if !warned {
				t.Errorf("%s: not followed, and nobody is told: %+v", version, got)
			}
		case version == "v1" && g.shaping && len(s.complaints) > 0 && !g.done(got): // It is told.
		case !g.done(got):
			t.Errorf("%s: neither followed nor closed: %+v", version, got)
		}
	}
	if g.done != nil && !warned && s.v3.Evaluate(guardedRequest).Status == http.StatusServiceUnavailable {
		t.Error("v3: closed without a word to whoever writes it")
	}
}

// leaves are the fields that hold values, by their path.
func leaves(d protoreflect.MessageDescriptor, at string, into map[string]bool) {
	whole := []protoreflect.Name{"StringMatch", "Destination", "Percent"}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		m := f.Message()
		if m == nil || f.IsMap() || m.FullName().Parent() == "google.protobuf" || slices.Contains(whole, m.Name()) {
			into[at+f.JSONName()] = true
			continue
		}
		leaves(m, at+f.JSONName()+".", into)
	}
}

func decoded(t *testing.T, text string) []*schema.Object {
	t.Helper()
	var out []*schema.Object
	for _, doc := range schema.Split([]byte(text), "objects.yaml") {
		objs, problems, _ := doc.Objects(t.Context(), schema.DefaultNamespace)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		out = append(out, objs...)
	}
	return out
}

func spellFor(t *testing.T, node string, objs []*schema.Object) *spelled {
	t.Helper()
	return spellWith(t, mesh.DefaultSettings(), node, objs)
}

func spellWith(t *testing.T, settings *mesh.Settings, node string, objs []*schema.Object) *spelled {
	t.Helper()
	proxy, err := mesh.ParseProxy(node)
	if err != nil {
		t.Fatal(err)
	}
	s, err := world{settings, objs, proxy}.spell(t)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestClaimsClose: claims are known at gateways only, and not here. What a
// route would have asked them of does not reach the one after it.
func TestClaimsClose(t *testing.T) {
	const claims = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec:\n  hosts: [shop.example]\n  gateways: [g]\n  http:\n" +
		"  - {match: [{uri: {prefix: /guard}, %s: {\"@request.auth.claims.group\": {exact: x}}}], directResponse: {status: 403}}\n  - {" + toA + "}\n"
	for _, field := range []string{"headers", "withoutHeaders"} {
		t.Run(field, func(t *testing.T) {
			s := spellFor(t, "router~10.9.9.9~router.default~default.svc.cluster.local", decoded(t, closedRegistry+fmt.Sprintf(claims, field)))
			for version, p := range map[string]*evaluator.Proxy{"v1": s.v1, "v3": s.v3} {
				request := evaluator.Request{Destination: netip.MustParseAddrPort("10.9.9.9:8080"), Method: "GET", Host: "shop.example", Path: "/guard"}
				if got := answered(p.Evaluate(request)); got.Status != http.StatusServiceUnavailable {
					t.Errorf("%s: want 503, got %+v", version, got)
				}
				request.Path = "/free"
				if got := p.Evaluate(request); !reaches(got) {
					t.Errorf("%s: closes what the route is not for: %+v", version, got)
				}
			}
		})
	}
}
