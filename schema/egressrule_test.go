package schema

import "testing"

func TestEgressRule(t *testing.T) {
	testSpecs(t, "config.istio.io/v1alpha2", "EgressRule", []specCase{
		{"by host", "destination: {service: example.com}\nports: [{port: 80, protocol: HTTP}, {port: 443, protocol: https}, {port: 81, protocol: http2}, {port: 82, protocol: grpc}]", nil},
		{"by wildcard", "destination: {service: '*.example.com'}\nports: [{port: 80, protocol: http}]", nil},
		{"by range", "destination: {service: 192.0.2.0/24}\nports: [{port: 1, protocol: tcp}, {port: 2, protocol: Mongo}]", nil},
		{"HTTP by range", "destination: {service: 192.0.2.0/24}\nports: [{port: 1, protocol: http}]", []string{"error FieldValueNotSupported spec.ports[0].protocol"}},
		{"TCP by host", "destination: {service: example.com}\nports: [{port: 1, protocol: tcp}]", []string{"warning NotHonoured spec.ports[0].protocol"}},
		{"nothing", "{}", []string{"error FieldValueRequired spec.destination", "error FieldValueRequired spec.ports"}},
		{"no service", "destination: {}\nports: [{port: 1, protocol: http}]", []string{"error FieldValueRequired spec.destination.service"}},
		{"all else", "destination: {service: a.b, name: a, namespace: b, domain: c, labels: {d: e}}\nports: [{port: 1, protocol: http}]", []string{
			"error FieldValueForbidden spec.destination.name", "error FieldValueForbidden spec.destination.namespace",
			"error FieldValueForbidden spec.destination.domain", "error FieldValueForbidden spec.destination.labels"}},
		{"bad service", "destination: {service: a_b}\nports: [{port: 1, protocol: http}]", []string{"error FieldValueInvalid spec.destination.service"}},
		{"no ports", "destination: {service: a}\nports: []", []string{"error FieldValueInvalid spec.ports"}},
		{"port twice", "destination: {service: a}\nports: [{port: 1, protocol: http}, {port: 1, protocol: http}]", []string{"error FieldValueDuplicate spec.ports[1].port"}},
		{"port of 0", "destination: {service: a}\nports: [{port: 0, protocol: http}]", []string{"error FieldValueInvalid spec.ports[0].port"}},
		{"port of 65536", "destination: {service: a}\nports: [{port: 65536, protocol: http}]", []string{"error FieldValueInvalid spec.ports[0].port"}},
		{"unknown protocol", "destination: {service: a}\nports: [{port: 1, protocol: udp}]", []string{"error FieldValueNotSupported spec.ports[0].protocol"}},
		{"no protocol", "destination: {service: a}\nports: [{port: 1}]", []string{"error FieldValueRequired spec.ports[0].protocol"}},
		{"egress proxy", "destination: {service: a}\nports: [{port: 1, protocol: http}]\nuseEgressProxy: true", []string{"error FieldValueNotSupported spec.useEgressProxy"}},
		{"no egress proxy", "destination: {service: a}\nports: [{port: 1, protocol: http}]\nuse_egress_proxy: false", nil},
	})
}
