package schema

import "testing"

func TestWorkloadEntry(t *testing.T) {
	testSpecs(t, "networking.istio.io/v1", "WorkloadEntry", []specCase{
		{"least", "address: 10.0.0.1", nil},
		{"everything", "address: '::1'\nports: {http: 80}\nlabels: {app.example.com/a: b}\nnetwork: n\nlocality: a/b/c\nweight: 1\nservice_account: s", nil},
		{"host name", "address: a.example.com", nil},
		{"network only", "network: n", nil},
		{"nothing", "{}", []string{"error FieldValueRequired spec.address"}},
		{"bad address", "address: 'a b'", []string{"error FieldValueInvalid spec.address"}},
		{"address and port", "address: 10.0.0.1:80", []string{"error FieldValueInvalid spec.address"}},
		{"socket", "address: unix:///run/a", nil},
		{"abstract socket", "address: unix://@a", nil},
		{"relative socket", "address: unix://run/a", []string{"error FieldValueInvalid spec.address"}},
		{"folder", "address: unix:///run/", []string{"error FieldValueInvalid spec.address"}},
		{"socket with ports", "address: unix:///run/a\nports: {http: 80}", []string{"error FieldValueForbidden spec.ports"}},
		{"bad ports", "address: a\nports: {'a b': 80, b: 0}", []string{"error FieldValueInvalid spec.ports[a b]", "error FieldValueInvalid spec.ports.b"}},
		{"bad labels", "address: a\nlabels: {'a b': c, d: 'e f'}", []string{"error FieldValueInvalid spec.labels[a b]", "error FieldValueInvalid spec.labels.d"}},
		{"negative weight", "address: a\nweight: -1", []string{"error FieldValueInvalid spec.weight"}},
	})
}
