package schema

import (
	"fmt"
	"strings"
	"testing"
)

func TestAuthorizationPolicy(t *testing.T) {
	operation := func(text string) string { return "rules: [{to: [{operation: {" + text + "}}]}]" }
	source := func(text string) string { return "rules: [{from: [{source: {" + text + "}}]}]" }
	when := func(text string) string { return "rules: [{when: [{" + text + "}]}]" }
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("/p%d", i))
	}
	lots := make([]string, 9)
	for i := range lots {
		lots[i] = "{to: [{operation: {paths: [" + strings.Join(many, ", ") + "]}}]}"
	}
	testSpecs(t, "security.istio.io/v1", "AuthorizationPolicy", []specCase{
		{"nothing", "{}", nil},
		{"everything", "rules: [{}]", nil},
		{"action", "action: DENY\nrules: [{to: [{operation: {paths: [/a]}}]}]", nil},
		{"unknown action", "action: REFUSE", []string{"error FieldValueNotSupported spec.action"}},
		{"target", "targetRefs: [{kind: Gateway}]", []string{"error FieldValueForbidden spec.targetRefs"}},
		{"custom without a provider", "action: CUSTOM", []string{"error FieldValueRequired spec.provider.name"}},
		{"provider without custom", "provider: {name: x}", []string{"error FieldValueForbidden spec.provider"}},
		{"empty source", source(""), []string{"error FieldValueRequired spec.rules[0].from[0].source"}},
		{"empty operation", operation(""), []string{"error FieldValueRequired spec.rules[0].to[0].operation"}},
		{"no source", "rules: [{from: [{}]}]", []string{"error FieldValueRequired spec.rules[0].from[0].source"}},
		{"ports", operation(`ports: ["80", "x"]`), []string{"error FieldValueInvalid spec.rules[0].to[0].operation.ports[1]"}},
		{"addresses", source("ipBlocks: [10.0.0.1, 10.0.0.0/8, '::/0', x]"), []string{"error FieldValueInvalid spec.rules[0].from[0].source.ipBlocks[3]"}},
		{"accounts", source("serviceAccounts: [a, b/c, 'd*', e/f/g]"), []string{"error FieldValueInvalid spec.rules[0].from[0].source.serviceAccounts[2]", "error FieldValueInvalid spec.rules[0].from[0].source.serviceAccounts[3]"}},
		{"accounts beside principals", source("serviceAccounts: [a], principals: [b]"), []string{"error FieldValueForbidden spec.rules[0].from[0].source.serviceAccounts"}},
		{"templates", operation("paths: ['/a/{*}', '/{**}/b', '/{*}/{**}', '/a{*}', '/{**}/{**}', '/{**}/{*}', '/{*}/*', '/{x}']"), []string{
			"error FieldValueInvalid spec.rules[0].to[0].operation.paths[3]", "error FieldValueInvalid spec.rules[0].to[0].operation.paths[4]", "error FieldValueInvalid spec.rules[0].to[0].operation.paths[5]",
			"error FieldValueInvalid spec.rules[0].to[0].operation.paths[6]", "error FieldValueInvalid spec.rules[0].to[0].operation.paths[7]"}},
		{"keys", when("key: source.namespace, values: [a]"), nil},
		{"indexed keys", when("key: 'request.headers[a]', values: [a]"), nil},
		{"nested keys", when("key: 'request.auth.claims[a][b]', notValues: [a]"), nil},
		{"unknown key", when("key: source.name, values: [a]"), []string{"error FieldValueInvalid spec.rules[0].when[0].key"}},
		{"key without an index", when("key: request.headers, values: [a]"), []string{"error FieldValueInvalid spec.rules[0].when[0].key"}},
		{"no values", when("key: source.ip"), []string{"error FieldValueRequired spec.rules[0].when[0].values"}},
		{"addresses of keys", when("key: source.ip, values: [x], notValues: [10.0.0.1, y]"), []string{"error FieldValueInvalid spec.rules[0].when[0].values[0]", "error FieldValueInvalid spec.rules[0].when[0].notValues[1]"}},
		{"ports of keys", when(`key: destination.port, values: ["80", "0"]`), []string{"error FieldValueInvalid spec.rules[0].when[0].values[1]"}},
		{"too much", "rules: [" + strings.Join(lots, ", ") + "]", []string{"error FieldValueInvalid spec.rules"}},
	})
}
