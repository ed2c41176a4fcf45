package schema

import (
	"strings"
	"testing"
)

func TestVirtualService(t *testing.T) {
	const route = "http: [{route: [{destination: {host: a}}]}]"
	testSpecs(t, "networking.istio.io/v1", "VirtualService", []specCase{
		{"the least", "hosts: [a]\n" + route, nil},
		{"nothing", "{}", []string{"error FieldValueRequired spec.http"}},
		{"unknown field", "hosts: [a]\nhttps: []\n" + route, []string{"error FieldUnknown spec.https"}},
		{"hosts", "hosts: [a, b.c, '*.d.e', 10.0.0.1, '::1']\n" + route, nil},
		{"host in upper case", "hosts: [A]\n" + route, nil},
		{"host in two cases", "hosts: [A, a]\n" + route, []string{"error FieldValueDuplicate spec.hosts[1]"}},
		{"host twice", "hosts: [a, a]\n" + route, []string{"error FieldValueDuplicate spec.hosts[1]"}},
		{"host within wildcard", "hosts: [a.b.c, '*.c', '*.b.c']\n" + route, []string{"error FieldValueDuplicate spec.hosts[1]", "error FieldValueDuplicate spec.hosts[2]"}},
		{"all hosts of sidecars", "hosts: ['*']\n" + route, []string{"error FieldValueInvalid spec.hosts[0]"}},
		{"all hosts of sidecars, named", "hosts: ['*']\ngateways: [g, mesh]\n" + route, []string{"error FieldValueInvalid spec.hosts[0]"}},
		{"all hosts of a gateway", "hosts: ['*']\ngateways: [g, n/h, old.form.of.names]\n" + route, nil},
		{"bad gateways", "hosts: [a]\ngateways: [n/, a/b/c, './a']\n" + route, []string{
			"error FieldValueInvalid spec.gateways[0]", "error FieldValueInvalid spec.gateways[1]", "error FieldValueInvalid spec.gateways[2]"}},
		{"delegated", route, nil},
		{"delegated too much", "gateways: [g]\ntls: [{match: [{sniHosts: [a]}], route: [{destination: {host: a}}]}]\ntcp: [{route: [{destination: {host: a}}]}]\nhttp: [{delegate: {name: b}}]", []string{
			"error FieldValueForbidden spec.gateways", "error FieldValueForbidden spec.tls",
			"error FieldValueForbidden spec.tcp", "error FieldValueForbidden spec.http[0].delegate"}},
		{"delegate", "hosts: [a]\nhttp: [{delegate: {name: b, namespace: c}}, {match: [{uri: {prefix: /}}], delegate: {name: d}}]", nil},
		{"export", "hosts: [a]\nexportTo: [., b]\n" + route, nil},
		{"export to none", "hosts: [a]\nexportTo: ['~']\n" + route, []string{"error FieldValueNotSupported spec.exportTo[0]"}},
		{"proto spelling", "hosts: [a]\nexport_to: ['*']\nhttp: [{match: [{ignore_uri_case: true, source_labels: {my_label: x}, query_params: {my_key: {exact: a}}}], route: [{destination: {host: a}}], mirror_percent: 5, mirror: {host: a}}]", nil},

		{"TLS", "hosts: ['*.b']\ntls: [{match: [{sniHosts: [a.b, '*.c.b'], port: 443, destinationSubnets: [10.0.0.0/8], sourceLabels: {a: b}, gateways: [mesh], sourceNamespace: n}], route: [{destination: {host: a}, weight: 1}, {destination: {host: b}}]}]", nil},
		{"TLS without name", "hosts: [a]\ntls: [{match: [{port: 1}], route: [{destination: {host: a}}]}, {match: [], route: []}, {}]", []string{
			"error FieldValueRequired spec.tls[0].match[0].sniHosts", "error FieldValueInvalid spec.tls[1].match",
			"error FieldValueRequired spec.tls[1].route", "error FieldValueRequired spec.tls[2].match", "error FieldValueRequired spec.tls[2].route"}},
		{"TLS of others", "hosts: [a, 10.0.0.1]\ntls: [{match: [{sniHosts: [b, 10.0.0.1]}], route: [{destination: {host: a}}]}]", []string{
			"error FieldValueInvalid spec.tls[0].match[0].sniHosts[0]", "warning NotHonoured spec.tls[0].match[0].sniHosts[1]"}},
		{"TCP", "hosts: [a]\ntcp: [{match: [{port: 1, sourceSubnet: 10.0.0.1}], route: [{destination: {host: a, port: {number: 2}}}]}]", nil},
		{"TCP without route", "hosts: [a]\ntcp: [{match: [{port: 1}]}]", []string{"error FieldValueRequired spec.tcp[0].route"}},
		{"TCP weights of 0", "hosts: [a]\ntcp: [{route: [{destination: {host: a}}, {destination: {host: b}}]}]", []string{"error FieldValueInvalid spec.tcp[0].route"}},
	})
}

func TestHTTPRoute(t *testing.T) {
	var cases []specCase
	for _, c := range []struct {
		name, route string
		want        []string // Problems, fields from the route on.
	}{
		{"everything", `{name: n, route: [{destination: {host: a, subset: v1, port: {number: 80}}, headers: {request: {set: {a: b, Host: x.y}}}}],
    timeout: 1m, retries: {attempts: 3, perTryTimeout: 250ms, retryOn: "5xx,503,reset", retryRemoteLocalities: true, retryIgnorePreviousHosts: false, backoff: 10ms},
    fault: {delay: {fixedDelay: 5s, percentage: {value: 0.1}}, abort: {httpStatus: 503, percentage: {value: 100}}}, rewrite: {uri: /x},
    mirrors: [{destination: {host: b}, percentage: {value: 5}}], corsPolicy: {allowOrigins: [{exact: a}], allowMethods: [GET, '*'], allowHeaders: [X-A], exposeHeaders: [B], maxAge: 24h, allowCredentials: true, unmatchedPreflights: IGNORE},
    headers: {request: {add: {X: y}, remove: [z]}, response: {set: {a: b}, add: {c: d}, remove: [e]}}}`, nil},
		{"nothing", "{}", []string{"error FieldValueRequired route"}},
		{"no destination", "{route: [{weight: 1}]}", []string{"error FieldValueRequired route[0].destination"}},
		{"no host", "{route: [{destination: {subset: v1}}]}", []string{"error FieldValueRequired route[0].destination.host"}},
		{"all hosts", "{route: [{destination: {host: '*'}}]}", []string{"error FieldValueInvalid route[0].destination.host"}},
		{"wildcard host", "{route: [{destination: {host: '*.google.com'}}]}", nil},
		{"port 0", "{route: [{destination: {host: a, port: {number: 0}}}]}", []string{"error FieldValueInvalid route[0].destination.port.number"}},
		{"weights of any sum", "{route: [{destination: {host: a}, weight: 7}, {destination: {host: b}}]}", nil},
		{"weights of 0", "{route: [{destination: {host: a}}, {destination: {host: b}, weight: 0}]}", []string{"error FieldValueInvalid route"}},
		{"negative weight", "{route: [{destination: {host: a}, weight: -1}]}", []string{"error FieldValueInvalid route[0].weight"}},

		{"redirect", "{redirect: {uri: /x, authority: a, scheme: https, port: 80, redirectCode: 302}}", nil},
		{"empty redirect", "{redirect: {}}", []string{"error FieldValueRequired redirect"}},
		{"redirect beside", "{redirect: {uri: /x}, route: [{destination: {host: a}}], fault: {abort: {httpStatus: 500}}, rewrite: {uri: /}}", []string{
			"error FieldValueForbidden route", "error FieldValueForbidden fault", "error FieldValueForbidden rewrite"}},
		{"bad redirect", "{redirect: {uri: /x, prefixRewrite: /, scheme: ftp, port: 1, derivePort: FROM_REQUEST_PORT, redirectCode: 200}}", []string{
			"error FieldValueForbidden redirect.prefixRewrite", "error FieldValueNotSupported redirect.scheme",
			"error FieldValueForbidden redirect.derivePort", "error FieldValueInvalid redirect.redirectCode"}},
		{"prefix redirect without prefix", "{redirect: {prefixRewrite: /x}}", []string{"warning NotHonoured redirect.prefixRewrite"}},
		{"prefix redirect of another match", "{match: [{uri: {prefix: /a}}, {uri: {exact: /b}}], redirect: {prefixRewrite: /x}}", []string{"error FieldValueInvalid redirect.prefixRewrite"}},
		{"prefix redirect of a match without path", "{match: [{method: {exact: GET}}], redirect: {prefixRewrite: /x}}", []string{"error FieldValueInvalid redirect.prefixRewrite"}},
		{"percent sign in header values", "{route: [{destination: {host: a}, headers: {response: {set: {x: '%b'}}}}], headers: {request: {add: {x: 50%, y: '%START_TIME', z: 'a%b%c'}}}}", []string{
			"error FieldValueInvalid route[0].headers.response.set.x", "error FieldValueInvalid headers.request.add.x",
			"error FieldValueInvalid headers.request.add.y", "error FieldValueInvalid headers.request.add.z"}},
		{"unknown operators in header values", "{route: [{destination: {host: a}}], headers: {request: {set: {x: '%USER%', y: '%ENVIRONMENT(HOME)%', z: '%REQ%', Host: '%REQ(x)%'}}}}", []string{
			"error FieldValueInvalid headers.request.set.x", "error FieldValueInvalid headers.request.set.y",
			"error FieldValueInvalid headers.request.set.z", "error FieldValueInvalid headers.request.set.Host"}},
		{"operators in header values", "{route: [{destination: {host: a}}], headers: {request: {set: {x: '100%%', y: '%REQ(:path):5%-%HOSTNAME%', z: '%START_TIME(%Y)%'}}}}", nil},
		{"any value of an absent header", "{match: [{withoutHeaders: {x: {regex: '*'}}}], route: [{destination: {host: a}}]}", nil},
		{"any value of a header", "{match: [{headers: {x: {regex: '*'}}}], route: [{destination: {host: a}}]}", []string{"error FieldValueInvalid match[0].headers.x.regex"}},
		{"prefix redirect", "{match: [{uri: {prefix: /a}}], redirect: {prefixRewrite: /x}}", nil},
		{"direct response", "{directResponse: {status: 503, body: {string: sorry}}}", nil},
		{"bytes", "{directResponse: {status: 200, body: {bytes: bm8=}}}", nil},
		{"bad direct response", "{directResponse: {status: 100, body: {string: a, bytes: bm8=}}, route: [{destination: {host: a}}]}", []string{
			"error FieldValueInvalid directResponse.status", "error FieldValueForbidden directResponse.body.bytes", "error FieldValueForbidden route"}},
		{"delegate beside", "{delegate: {name: b}, redirect: {uri: /}, route: [{destination: {host: a}}]}", []string{
			"error FieldValueForbidden redirect", "error FieldValueForbidden route"}},

		{"empty rewrite", "{rewrite: {}, route: [{destination: {host: a}}]}", []string{"error FieldValueRequired rewrite"}},
		{"rewrite without slash", "{rewrite: {uri: x}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured rewrite.uri"}},
		{"rewrite to a space", "{rewrite: {uri: '/a b', authority: 'a b'}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured rewrite.uri", "warning NotHonoured rewrite.authority"}},
		{"rewrite to a fragment", "{rewrite: {uri: '/a#b'}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured rewrite.uri"}},
		{"rewrite to a query", "{rewrite: {uri: '/a?b'}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured rewrite.uri"}},
		{"rewrite without the slash of the prefix", "{match: [{uri: {prefix: /api/}}], rewrite: {uri: /v2}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured rewrite.uri"}},
		{"rewrite with the slash of the prefix", "{match: [{uri: {prefix: /api/}}, {uri: {exact: /a}}], rewrite: {uri: /v2/}, route: [{destination: {host: a}}]}", nil},
		{"two rewrites", `{rewrite: {uri: /, uriRegexRewrite: {match: a, rewrite: b}}, route: [{destination: {host: a}}]}`, []string{"error FieldValueForbidden rewrite.uriRegexRewrite"}},
		{"half a rewrite", `{rewrite: {uriRegexRewrite: {match: '(', rewrite: ''}}, route: [{destination: {host: a}}]}`, []string{
			"error FieldValueInvalid rewrite.uriRegexRewrite.match", "error FieldValueInvalid rewrite.uriRegexRewrite.rewrite"}},
		{"timeout of 0", "{timeout: 0s, route: [{destination: {host: a}}]}", []string{"error FieldValueInvalid timeout"}},
		{"timeout without unit", "{timeout: 5, route: [{destination: {host: a}}]}", []string{"error FieldValueTypeInvalid timeout"}},
		{"retries of 0", "{retries: {attempts: 0}, route: [{destination: {host: a}}]}", nil},
		{"retries of 0 with conditions", "{retries: {retryOn: 5xx}, route: [{destination: {host: a}}]}", []string{"error FieldValueRequired retries.attempts"}},
		{"unknown retries", "{retries: {attempts: 1, retryOn: '5xx, 4xx'}, route: [{destination: {host: a}}]}", []string{"error FieldValueNotSupported retries.retryOn"}},

		{"empty fault", "{fault: {}, route: [{destination: {host: a}}]}", []string{"error FieldValueRequired fault"}},
		{"faults of nothing", "{fault: {delay: {}, abort: {}}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured fault.delay", "warning NotHonoured fault.abort"}},
		{"bad faults", "{fault: {delay: {exponentialDelay: 1s, percentage: {value: 101}}, abort: {grpcStatus: BAD, percentage: {value: 0.00001}}}, route: [{destination: {host: a}}]}", []string{
			"error FieldValueNotSupported fault.delay.exponentialDelay", "error FieldValueInvalid fault.delay.percentage.value",
			"error FieldValueNotSupported fault.abort.grpcStatus", "error FieldValueInvalid fault.abort.percentage.value"}},
		{"two aborts", "{fault: {abort: {httpStatus: 500, grpcStatus: UNAVAILABLE, http2Error: x}}, route: [{destination: {host: a}}]}", []string{
			"error FieldValueForbidden fault.abort.grpcStatus", "error FieldValueForbidden fault.abort.http2Error"}},
		{"HTTP/2 abort", "{fault: {abort: {http2Error: x}}, route: [{destination: {host: a}}]}", []string{"error FieldValueNotSupported fault.abort.http2Error"}},
		{"percent twice", "{fault: {delay: {fixedDelay: 1s, percent: 1, percentage: {value: 1}}}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured fault.delay.percent"}},

		{"mirror twice", "{mirror: {host: a}, mirrors: [{destination: {host: b}}], route: [{destination: {host: a}}]}", []string{"error FieldValueForbidden mirrors"}},
		{"mirror percentages", "{mirror: {host: a}, mirrorPercent: 1, mirrorPercentage: {value: 1}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured mirrorPercent"}},
		{"percentage of no mirror", "{mirrorPercentage: {value: 1}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured mirrorPercentage"}},
		{"mirror to all", "{mirror: {host: '*'}, route: [{destination: {host: a}}]}", []string{"error FieldValueInvalid mirror.host"}},
		{"bad cors", "{corsPolicy: {allowOrigins: [{}, {exact: ''}, {regex: '('}], allowMethods: [get], allowHeaders: ['a b'], maxAge: 10ms}, route: [{destination: {host: a}}]}", []string{
			"error FieldValueRequired corsPolicy.allowOrigins[0]", "error FieldValueRequired corsPolicy.allowOrigins[1]",
			"error FieldValueInvalid corsPolicy.allowOrigins[2].regex", "error FieldValueNotSupported corsPolicy.allowMethods[0]",
			"error FieldValueInvalid corsPolicy.allowHeaders[0]", "error FieldValueInvalid corsPolicy.maxAge"}},
		{"origins twice", "{corsPolicy: {allowOrigins: [{exact: a}], allowOrigin: [b]}, route: [{destination: {host: a}}]}", []string{"warning NotHonoured corsPolicy.allowOrigin"}},

		{"hosts in headers", "{headers: {request: {set: {':authority': a}, add: {host: b}, remove: [x, Host]}, response: {set: {host: a}, remove: [host]}}, route: [{destination: {host: a}}]}", []string{
			"error FieldValueDuplicate headers.request.add.host", "error FieldValueForbidden headers.request.remove[1]",
			"error FieldValueForbidden headers.response.set.host", "error FieldValueForbidden headers.response.remove[0]"}},
		{"bad headers", "{headers: {request: {set: {':path': a, '': b, c: \"d\\ne\"}, remove: [':path']}}, route: [{destination: {host: a}}]}", []string{
			"error FieldValueInvalid headers.request.set[:path]", "error FieldValueInvalid headers.request.set[]",
			"error FieldValueInvalid headers.request.set.c", "error FieldValueInvalid headers.request.remove[0]"}},
		{"two authorities", "{rewrite: {authority: a}, headers: {request: {set: {Host: b}}}, route: [{destination: {host: a}}]}", []string{"error FieldValueDuplicate headers.request.set.Host"}},
	} {
		for i, problem := range c.want {
			at := strings.LastIndexByte(problem, ' ') + 1
			c.want[i] = problem[:at] + "spec.http[0]." + problem[at:]
		}
		cases = append(cases, specCase{c.name, "hosts: [a]\nhttp:\n- " + c.route, c.want})
	}
	testSpecs(t, "networking.istio.io/v1", "VirtualService", cases)
}

func TestHTTPMatch(t *testing.T) {
	const route = ", route: [{destination: {host: a}}]}"
	testSpecs(t, "networking.istio.io/v1", "VirtualService", []specCase{
		{"everything", "hosts: [a]\nhttp:\n- {match: [{name: n, uri: {regex: '/a.*'}, scheme: {exact: http}, method: {exact: GET}, authority: {prefix: a}," +
			" headers: {X-A: {exact: a}, b: {}, ':path': {prefix: /}}, withoutHeaders: {c: {}}, queryParams: {d: {exact: ''}}," +
			" port: 80, sourceLabels: {a: b}, sourceNamespace: n, gateways: [mesh, n/g], statPrefix: s}]" + route, nil},
		{"two comparisons", "hosts: [a]\nhttp:\n- {match: [{uri: {exact: /a, prefix: /b}}]" + route, []string{"error FieldValueForbidden spec.http[0].match[0].uri.prefix"}},
		{"empty texts", "hosts: [a]\nhttp:\n- {match: [{uri: {prefix: ''}, method: {prefix: ''}, headers: {a: {regex: ''}}}]" + route, []string{
			"error FieldValueInvalid spec.http[0].match[0].method.prefix", "error FieldValueInvalid spec.http[0].match[0].headers.a.regex"}},
		{"bad regex", "hosts: [a]\nhttp:\n- {match: [{queryParams: {q: {regex: '(?=a)'}}}]" + route, []string{"error FieldValueInvalid spec.http[0].match[0].queryParams.q.regex"}},
		{"long regex", "hosts: [a]\nhttp:\n- {match: [{uri: {regex: " + strings.Repeat("a", 1025) + "}}]" + route, []string{"error FieldValueTooLong spec.http[0].match[0].uri.regex"}},
		{"bad header", "hosts: [a]\nhttp:\n- {match: [{headers: {'a b': {}, ':x': {}}}]" + route, []string{
			"error FieldValueInvalid spec.http[0].match[0].headers[a b]", "error FieldValueInvalid spec.http[0].match[0].headers[:x]"}},
		{"header null", "hosts: [a]\nhttp:\n- {match: [{headers: {a: null}}]" + route, []string{"error FieldValueTypeInvalid spec.http[0].match[0].headers.a"}},
		{"path as header", "hosts: [a]\nhttp:\n- {match: [{headers: {uri: {prefix: /}}}]" + route, []string{"warning NotHonoured spec.http[0].match[0].headers.uri"}},
		{"case of a regex", "hosts: [a]\nhttp:\n- {match: [{ignoreUriCase: true, uri: {regex: a}}]" + route, []string{"warning NotHonoured spec.http[0].match[0].ignoreUriCase"}},
		{"claims at a gateway", "hosts: [a]\ngateways: [g]\nhttp:\n- {match: [{headers: {'@request.auth.claims.sub': {exact: a}}}]" + route, nil},
		{"claims at sidecars", "hosts: [a]\nhttp:\n- {match: [{headers: {'@request.auth.claims.sub': {exact: a}}}]" + route, []string{
			"error FieldValueForbidden spec.http[0].match[0].headers[@request.auth.claims.sub]"}},

		{"never reached", "hosts: [a]\nhttp:\n- {name: all" + route + "\n- {match: [{port: 80}]" + route + "\n- {name: last" + route, []string{
			"warning NotHonoured spec.http[1]", "warning NotHonoured spec.http[2]"}},
		{"empty condition", "hosts: [a]\nhttp:\n- {match: [{name: all}]" + route + "\n- {name: last" + route, []string{"warning NotHonoured spec.http[1]"}},
		{"condition twice", "hosts: [a]\nhttp:\n- {match: [{port: 80}, {name: b, port: 81}]" + route + "\n- {match: [{name: c, port: 81}, {port: 82}]" + route, []string{
			"warning NotHonoured spec.http[1].match[0]"}},
		{"covered", "hosts: [a]\nhttp:\n- {match: [{uri: {prefix: /a}}]" + route + "\n- {match: [{uri: {prefix: /b}}, {uri: {exact: /a/b}, method: {exact: GET}}]" + route, []string{
			"warning NotHonoured spec.http[1].match[1]"}},
		{"all paths before one", "hosts: [a]\nhttp:\n- {match: [{uri: {prefix: /}}]" + route + "\n- {match: [{uri: {prefix: /admin}}]" + route, []string{
			"warning NotHonoured spec.http[1].match[0]"}},
		{"not covered", "hosts: [a]\nhttp:\n- {match: [{uri: {prefix: /a}, method: {exact: GET}}, {uri: {exact: /A}}, {uri: {regex: '/a.*'}}, {uri: {prefix: /}, gateways: [mesh]}]" + route +
			"\n- {match: [{uri: {prefix: /a}}, {uri: {prefix: /ab}, withoutHeaders: {b: {}}}, {uri: {prefix: /}, port: 80}]" + route, nil},
		{"TCP never reached", "hosts: [a]\ntcp:\n- {route: [{destination: {host: a}}]}\n- {route: [{destination: {host: b}}]}", []string{"warning NotHonoured spec.tcp[1]"}},
	})
}

func TestConditionsThatNeverFit(t *testing.T) {
	var cases []specCase
	for condition, where := range map[string]string{
		"uri: {prefix: admin}":                            "uri.prefix",
		"uri: {exact: '/a?b=c'}":                          "uri.exact",
		"uri: {prefix: '/a#b'}":                           "uri.prefix",
		"uri: {prefix: /%61dmin}":                         "uri.prefix",
		"uri: {exact: /a%7E}":                             "uri.exact",
		"uri: {exact: /x/../y}":                           "uri.exact",
		"uri: {exact: /x/..}":                             "uri.exact",
		"uri: {prefix: /./y}":                             "uri.prefix",
		"uri: {exact: '/a b'}":                            "uri.exact",
		"uri: {exact: /ä}":                                "uri.exact",
		"uri: {prefix: '/a\\b'}":                          "uri.prefix",
		"uri: {prefix: '/a{b}'}":                          "uri.prefix",
		"method: {exact: get}":                            "method.exact",
		"method: {exact: 'GET '}":                         "method.exact",
		"scheme: {exact: HTTP}":                           "scheme.exact",
		"scheme: {prefix: httpx}":                         "scheme.prefix",
		"authority: {exact: 'a.b '}":                      "authority.exact",
		"headers: {x: {exact: ' a'}}":                     "headers.x.exact",
		"headers: {x: {exact: 'a '}}":                     "headers.x.exact",
		"headers: {x: {prefix: ' a'}}":                    "headers.x.prefix",
		"withoutHeaders: {x: {exact: 'a '}}":              "withoutHeaders.x.exact",
		"queryParams: {q: {exact: 'a b'}}":                "queryParams.q.exact",
		"queryParams: {q: {exact: 'a&b'}}":                "queryParams.q.exact",
		"queryParams: {q: {prefix: ä}}":                   "queryParams.q.prefix",
		"queryParams: {'a b': {}}":                        "queryParams[a b]",
		"uri: {exact: '*'}":                               "",
		"uri: {prefix: ''}":                               "",
		"uri: {prefix: /x/..}":                            "", // So begins /x/..y.
		"uri: {exact: /x/...}":                            "",
		"uri: {exact: /a%20b%2Fc%zz%}":                    "",
		"uri: {exact: \"/a!$&'()*+,;=:@[]-_.~b\"}":        "",
		"uri: {regex: admin}":                             "",
		"method: {exact: purge}":                          "",
		"scheme: {prefix: h}":                             "",
		"headers: {x: {prefix: 'a '}, y: {exact: 'a b'}}": "",
		"queryParams: {q: {exact: 'a=b+c%20d/?'}}":        "",
	} {
		var want []string
		if where != "" {
			want = []string{"warning NotHonoured spec.http[0].match[0]." + where}
		}
		cases = append(cases, specCase{condition, "hosts: [a]\nhttp:\n- {match: [{" + condition + "}], route: [{destination: {host: a}}]}", want})
	}
	testSpecs(t, "networking.istio.io/v1", "VirtualService", cases)
}
