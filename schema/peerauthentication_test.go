package schema

import "testing"

func TestPeerAuthentication(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		testSpecs(t, "security.istio.io/"+version, "PeerAuthentication", []specCase{
			{"nothing", "{}", nil},
			{"mode", "mtls: {mode: STRICT}", nil},
			{"unset", "mtls: {mode: UNSET}", nil},
			{"everything", "selector: {matchLabels: {app: a}}\nmtls: {mode: PERMISSIVE}\nportLevelMtls: {'80': {mode: DISABLE}, '65535': {}}", nil},
			{"ports without quotes", "selector: {matchLabels: {app: a}}\nportLevelMtls: {80: {mode: DISABLE}}", nil},
			{"unknown mode", "mtls: {mode: strict}", []string{"error FieldValueNotSupported spec.mtls.mode"}},
			{"ports of all workloads", "portLevelMtls: {'80': {mode: DISABLE}}", []string{"error FieldValueForbidden spec.portLevelMtls"}},
			{"port names", "selector: {matchLabels: {app: a}}\nportLevelMtls: {http: {mode: DISABLE}, '0': {}, '080': {}, '65536': {}}", []string{
				"error FieldValueInvalid spec.portLevelMtls.http", "error FieldValueInvalid spec.portLevelMtls[0]", "error FieldValueInvalid spec.portLevelMtls[080]", "error FieldValueInvalid spec.portLevelMtls[65536]"}},
			{"expressions", "selector: {matchExpressions: []}", []string{"error FieldUnknown spec.selector.matchExpressions"}},
		})
	}
}
