package schema

import "testing"

func TestRouteRule(t *testing.T) {
	testSpecs(t, "config.istio.io/v1alpha2", "RouteRule", []specCase{
		{"least", "destination: {name: a}", nil},
		{"no destination", "precedence: 1", []string{"error FieldValueRequired spec.destination"}},
		{"empty destination", "destination: {}", []string{"error FieldValueRequired spec.destination"}},
		{"destination with labels", "destination: {name: a, labels: {v: v1}}", []string{"error FieldValueForbidden spec.destination.labels"}},
		{"destination with empty labels", "destination: {name: a, labels: {}}", []string{"warning NotHonoured spec.destination.labels"}},
		{"name and service", "destination: {name: a, service: a.b}", []string{"error FieldValueForbidden spec.destination.service"}},
		{"service with namespace and domain", "destination: {service: a.b, namespace: n, domain: d}", []string{
			"error FieldValueForbidden spec.destination.namespace", "error FieldValueForbidden spec.destination.domain"}},
		{"name with dots", "destination: {name: a.b}", []string{"error FieldValueInvalid spec.destination.name"}},
		{"service by range", "destination: {service: 10.0.0.0/8}", nil},
		{"service by wildcard", "destination: {service: '*.example.com'}", nil},
		{"service in upper case", "destination: {service: A.com}", []string{"error FieldValueInvalid spec.destination.service"}},
		{"service by IPv6 range", "destination: {service: '::/8'}", []string{"error FieldValueInvalid spec.destination.service"}},
		{"bad domain", "destination: {name: a, domain: a_b}", []string{"error FieldValueInvalid spec.destination.domain"}},
		{"negative precedence", "destination: {name: a}\nprecedence: -5", nil},
		{"precedence of more than 32 bits", "destination: {name: a}\nprecedence: 2147483648", []string{"error FieldValueInvalid spec.precedence"}},
		{"precedence in quotes", "destination: {name: a}\nprecedence: '1'", []string{"error FieldValueTypeInvalid spec.precedence"}},
		{"precedence with a fraction", "destination: {name: a}\nprecedence: 1.5", []string{"error FieldValueTypeInvalid spec.precedence"}},
		{"unknown field", "destination: {name: a}\nrouet: []", []string{"error FieldUnknown spec.rouet"}},

		{"route", "destination: {name: a}\nroute: [{labels: {v: v1}, weight: 40}, {labels: {v: v2}, weight: 60}]", nil},
		{"route, empty list", "destination: {name: a}\nroute: []", []string{"error FieldValueInvalid spec.route"}},
		{"route, null", "destination: {name: a}\nroute:", nil},
		{"one route of 0", "destination: {name: a}\nroute: [{weight: 0}]", nil},
		{"one route of 50", "destination: {name: a}\nroute: [{weight: 50}]", []string{"error FieldValueInvalid spec.route"}},
		{"weights of 99", "destination: {name: a}\nroute: [{weight: 49}, {weight: 50}]", []string{"error FieldValueInvalid spec.route"}},
		{"two routes without weight", "destination: {name: a}\nroute: [{}, {}]", []string{"error FieldValueInvalid spec.route"}},
		{"weight of 101", "destination: {name: a}\nroute: [{weight: 101}]", []string{"error FieldValueInvalid spec.route[0].weight"}},
		{"bad label in route", "destination: {name: a}\nroute: [{labels: {v: 'a b'}}]", []string{"error FieldValueInvalid spec.route[0].labels.v"}},
		{"empty label value", "destination: {name: a}\nroute: [{labels: {v: ''}}]", nil},
		{"number as label value", "destination: {name: a}\nroute: [{labels: {v: 1}}]", []string{"error FieldValueTypeInvalid spec.route[0].labels.v"}},
		{"empty labels in route", "destination: {name: a}\nroute: [{labels: {}}]", []string{"warning NotHonoured spec.route[0].labels"}},
		{"destination in route is not checked", "destination: {name: a}\nroute: [{destination: {name: A_, service: b}}]", []string{
			"warning NotHonoured spec.route[0].destination.service"}},

		{"redirect", "destination: {name: a}\nredirect: {uri: /x}", nil},
		{"empty redirect", "destination: {name: a}\nredirect: {}", []string{"error FieldValueRequired spec.redirect"}},
		{"redirect beside everything", "destination: {name: a}\nredirect: {uri: /x}\nroute: [{}]\nhttpFault: {}\nrewrite: {uri: /}\nwebsocketUpgrade: true", []string{
			"error FieldValueForbidden spec.route", "error FieldValueForbidden spec.httpFault",
			"error FieldValueForbidden spec.rewrite", "error FieldValueForbidden spec.websocketUpgrade"}},
		{"redirect beside mirror, cors, headers", "destination: {name: a}\nredirect: {uri: /x}\nmirror: {name: b}\ncorsPolicy: {}\nappendHeaders: {a: b}", nil},
		{"redirect of two lines", "destination: {name: a}\nredirect: {uri: \"a\\nb\"}", []string{"error FieldValueInvalid spec.redirect.uri"}},
		{"empty rewrite", "destination: {name: a}\nrewrite: {}", []string{"error FieldValueRequired spec.rewrite"}},
		{"websocket as text", "destination: {name: a}\nwebsocketUpgrade: 'true'", []string{"error FieldValueTypeInvalid spec.websocketUpgrade"}},

		{"timeout", "destination: {name: a}\nhttpReqTimeout: {simpleTimeout: {timeout: 1m}}", nil},
		{"empty timeout", "destination: {name: a}\nhttpReqTimeout: {}", nil},
		{"timeout missing", "destination: {name: a}\nhttpReqTimeout: {simpleTimeout: {}}", []string{"error FieldValueRequired spec.httpReqTimeout.simpleTimeout.timeout"}},
		{"timeout under 1ms", "destination: {name: a}\nhttpReqTimeout: {simpleTimeout: {timeout: 0s}}", []string{"error FieldValueInvalid spec.httpReqTimeout.simpleTimeout.timeout"}},
		{"timeout with microseconds", "destination: {name: a}\nhttpReqTimeout: {simpleTimeout: {timeout: 1.0005s}}", []string{"error FieldValueInvalid spec.httpReqTimeout.simpleTimeout.timeout"}},
		{"timeout without unit", "destination: {name: a}\nhttpReqTimeout: {simpleTimeout: {timeout: 5}}", []string{"error FieldValueTypeInvalid spec.httpReqTimeout.simpleTimeout.timeout"}},
		{"timeout ignored fields", "destination: {name: a}\nhttpReqTimeout: {custom: {x: 1}, simpleTimeout: {timeout: 1s, overrideHeaderName: x}}", []string{
			"warning NotHonoured spec.httpReqTimeout.custom", "warning NotHonoured spec.httpReqTimeout.simpleTimeout.overrideHeaderName"}},
		{"retries", "destination: {name: a}\nhttpReqRetries: {simpleRetry: {attempts: 3, perTryTimeout: 250ms}}", nil},
		{"retries without timeout", "destination: {name: a}\nhttpReqRetries: {simpleRetry: {attempts: 3}}", []string{"error FieldValueRequired spec.httpReqRetries.simpleRetry.perTryTimeout"}},
		{"negative retries", "destination: {name: a}\nhttpReqRetries: {simpleRetry: {attempts: -1, perTryTimeout: 1s}}", []string{"error FieldValueInvalid spec.httpReqRetries.simpleRetry.attempts"}},

		{"delay", "destination: {name: a}\nhttpFault: {delay: {percent: 10.5, fixedDelay: 5s}}", nil},
		{"empty fault", "destination: {name: a}\nhttpFault: {}", nil},
		{"delay without time", "destination: {name: a}\nhttpFault: {delay: {percent: 10}}", []string{"error FieldValueRequired spec.httpFault.delay.fixedDelay"}},
		{"delay of nothing", "destination: {name: a}\nhttpFault: {delay: {fixedDelay: 1s}}", []string{"warning NotHonoured spec.httpFault.delay.percent"}},
		{"delay of 101 percent", "destination: {name: a}\nhttpFault: {delay: {percent: 101, fixedDelay: 1s}}", []string{"error FieldValueInvalid spec.httpFault.delay.percent"}},
		{"exponential delay", "destination: {name: a}\nhttpFault: {delay: {percent: 1, fixedDelay: 1s, exponentialDelay: 1s}}", []string{"error FieldValueNotSupported spec.httpFault.delay.exponentialDelay"}},
		{"abort", "destination: {name: a}\nhttpFault: {abort: {percent: 100, httpStatus: 600}}", nil},
		{"abort of 601", "destination: {name: a}\nhttpFault: {abort: {percent: 100, httpStatus: 601}}", []string{"error FieldValueInvalid spec.httpFault.abort.httpStatus"}},
		{"abort of nothing", "destination: {name: a}\nhttpFault: {abort: {percent: 100}}", []string{"warning NotHonoured spec.httpFault.abort"}},
		{"abort by gRPC and HTTP/2", "destination: {name: a}\nhttpFault: {abort: {percent: 100, httpStatus: 500, grpcStatus: X, http2Error: Y, overrideHeaderName: z}}", []string{
			"error FieldValueNotSupported spec.httpFault.abort.grpcStatus",
			"warning NotHonoured spec.httpFault.abort.http2Error", "warning NotHonoured spec.httpFault.abort.overrideHeaderName"}},
		{"TCP faults", "destination: {name: a}\nl4Fault:\n  throttle: {percent: 101}", []string{
			"error FieldValueNotSupported spec.l4Fault", "error FieldValueRequired spec.l4Fault.throttle.throttleAfterPeriod",
			"error FieldValueInvalid spec.l4Fault.throttle.percent"}},

		{"mirror", "destination: {name: a}\nmirror: {name: b, labels: {v: v1}}", nil},
		{"bad mirror", "destination: {name: a}\nmirror: {namespace: n}", []string{"error FieldValueRequired spec.mirror"}},
		{"cors", "destination: {name: a}\ncorsPolicy: {allowOrigin: ['*'], allowMethods: [GET], allowHeaders: [a-b], exposeHeaders: [c], maxAge: 1m, allowCredentials: false}", nil},
		{"bad cors", "destination: {name: a}\ncorsPolicy:\n  allowMethods: [get]\n  allowHeaders: [A]\n  exposeHeaders: ['']\n  maxAge: 1500ms", []string{
			"error FieldValueNotSupported spec.corsPolicy.allowMethods[0]", "error FieldValueInvalid spec.corsPolicy.allowHeaders[0]",
			"error FieldValueInvalid spec.corsPolicy.exposeHeaders[0]", "error FieldValueInvalid spec.corsPolicy.maxAge"}},
		{"append headers", "destination: {name: a}\nappendHeaders: {x-a: b}", nil},
		{"append bad headers", "destination: {name: a}\nappendHeaders: {X-A: b, c: ''}", []string{
			"error FieldValueInvalid spec.appendHeaders[X-A]", "error FieldValueInvalid spec.appendHeaders.c"}},
	})
}

func TestMatchCondition(t *testing.T) {
	testSpecs(t, "config.istio.io/v1alpha2", "RouteRule", []specCase{
		{"empty", "destination: {name: a}\nmatch: {}", nil},
		{"source", "destination: {name: a}\nmatch: {source: {name: b, labels: {v: v1}}}", nil},
		{"source of labels only", "destination: {name: a}\nmatch: {source: {labels: {v: v1}}}", []string{"error FieldValueRequired spec.match.source"}},
		{"TCP is ignored", "destination: {name: a}\nmatch: {tcp: {sourceSubnet: [10.0.0.0/8, 10.1.1.1]}}", []string{"warning NotHonoured spec.match.tcp"}},
		{"TCP is checked", "destination: {name: a}\nmatch: {tcp: {sourceSubnet: ['::1']}}", []string{
			"warning NotHonoured spec.match.tcp", "error FieldValueInvalid spec.match.tcp.sourceSubnet[0]"}},
		{"UDP", "destination: {name: a}\nmatch: {udp: {}}", []string{"error FieldValueNotSupported spec.match.udp"}},
		{"headers", "destination: {name: a}\nmatch: {request: {headers: {uri: {prefix: /x}, x-a: {exact: ''}, cookie: {regex: '^a.*$'}}}}", nil},
		{"empty uri", "destination: {name: a}\nmatch: {request: {headers: {uri: {exact: ''}}}}", []string{"error FieldValueInvalid spec.match.request.headers.uri.exact"}},
		{"name in upper case", "destination: {name: a}\nmatch: {request: {headers: {Cookie: {exact: a}}}}", []string{"error FieldValueInvalid spec.match.request.headers.Cookie"}},
		{"no kind of match", "destination: {name: a}\nmatch: {request: {headers: {x-a: {}}}}", []string{"error FieldValueRequired spec.match.request.headers[x-a]"}},
		{"two kinds of match", "destination: {name: a}\nmatch: {request: {headers: {a: {exact: b, prefix: c}}}}", []string{"error FieldValueForbidden spec.match.request.headers.a.prefix"}},
		{"bare text", "destination: {name: a}\nmatch: {request: {headers: {a: b}}}", []string{"error FieldValueTypeInvalid spec.match.request.headers.a"}},
		{"regex that is none", "destination: {name: a}\nmatch: {request: {headers: {a: {regex: '(?=a)'}}}}", []string{"error FieldValueInvalid spec.match.request.headers.a.regex"}},
	})
}
