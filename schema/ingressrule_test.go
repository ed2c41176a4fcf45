package schema

import "testing"

func TestIngressRule(t *testing.T) {
	testSpecs(t, "config.istio.io/v1alpha2", "IngressRule", []specCase{
		{"by number", "destination: {name: a}\ndestinationPort: 80", nil},
		{"by name", "destination: {name: a}\ndestinationPortName: http\ntlsSecret: s.default", nil},
		{"both", "destination: {name: a}\ndestinationPort: 80\ndestinationPortName: http", []string{"error FieldValueForbidden spec.destinationPortName"}},
		{"neither", "destination: {name: a}", []string{"warning NotHonoured spec"}},
		{"nothing", "destinationPort: 80", []string{"error FieldValueRequired spec.destination"}},
		{"labels", "destination: {name: a, labels: {b: c}}\ndestinationPort: 80", []string{"error FieldValueForbidden spec.destination.labels"}},
		{"ignored fields", "destination: {name: a}\ndestinationPort: 80\nport: 81\nprecedence: 1", []string{
			"warning NotHonoured spec.port", "warning NotHonoured spec.precedence"}},
		{"match", "destination: {name: a}\ndestinationPort: 80\nmatch: {request: {headers: {authority: {exact: a}, uri: {prefix: /}}}}", nil},
		{"match by exact uri", "destination: {name: a}\ndestinationPort: 80\nmatch: {request: {headers: {uri: {exact: /}}}}", nil},
		{"match is not checked", "destination: {name: a}\ndestinationPort: 80\nmatch:\n  source: {name: A_}\n  tcp: {sourceSubnet: [x]}\n  udp: {}\n" +
			"  request:\n    headers:\n      Cookie: {exact: a}\n      authority: {prefix: a}\n      uri: {regex: '('}", []string{
			"warning NotHonoured spec.match.source", "warning NotHonoured spec.match.tcp", "warning NotHonoured spec.match.udp",
			"warning NotHonoured spec.match.request.headers.Cookie", "warning NotHonoured spec.match.request.headers.authority",
			"warning NotHonoured spec.match.request.headers.uri"}},
		{"match of wrong type", "destination: {name: a}\ndestinationPort: 80\nmatch: {request: {headers: {uri: /}}}", []string{
			"error FieldValueTypeInvalid spec.match.request.headers.uri"}},
	})
}
