package schema

import "testing"

func TestServiceEntry(t *testing.T) {
	const ports = "hosts: [a.b]\nports: [{number: 80, name: http, protocol: HTTP}]\n"
	testSpecs(t, "networking.istio.io/v1", "ServiceEntry", []specCase{
		{"external by default", ports, nil},
		{"everything", `hosts: [reviews.default.svc.cluster.local]
addresses: [10.0.0.1]
ports: [{number: 80, name: http, protocol: http, targetPort: 8080}, {number: 90, name: tcp}]
location: MESH_INTERNAL
resolution: STATIC
endpoints:
- {address: 127.0.0.1, ports: {http: 81}, labels: {version: v1}, network: n, locality: r/z, weight: 3, serviceAccount: s}
- {address: '::1'}
exportTo: [., other]
subjectAltNames: [spiffe://x]`, nil},
		{"proto spelling and numbers", "hosts: [a.b]\nports: [{number: 80, name: http, target_port: 81}]\nresolution: 1\nlocation: 1\nworkload_selector: {labels: {my_label: x}}\nexport_to: ['*']", nil},
		{"nothing", "{}", []string{"error FieldValueRequired spec.hosts", "warning NotHonoured spec.ports"}},
		{"empty lists", "hosts: []\nports: []", []string{"error FieldValueInvalid spec.hosts", "warning NotHonoured spec.ports"}},
		{"host in upper case", "hosts: [Reviews.Example.COM]\nports: [{number: 80, name: http}]", nil},
		{"host in two cases", "hosts: [a, A]\nports: [{number: 80, name: http}]", []string{"error FieldValueDuplicate spec.hosts[1]"}},
		{"bare wildcard", "hosts: ['*']\nports: [{number: 80, name: http}]", []string{"error FieldValueInvalid spec.hosts[0]"}},
		{"wildcard", "hosts: ['*.example.com']\nports: [{number: 80, name: http}]", nil},
		{"bad host", "hosts: ['a b']\nports: [{number: 80, name: http}]", []string{"error FieldValueInvalid spec.hosts[0]"}},
		{"host twice", "hosts: [a, a]\nports: [{number: 80, name: http}]", []string{"error FieldValueDuplicate spec.hosts[1]"}},
		{"port name and number twice", "hosts: [a]\nports: [{number: 80, name: http}, {number: 80, name: http}]", []string{
			"error FieldValueDuplicate spec.ports[1].number", "error FieldValueDuplicate spec.ports[1].name"}},
		{"port without name", "hosts: [a]\nports: [{number: 80}]", []string{"error FieldValueRequired spec.ports[0].name"}},
		{"bad ports", "hosts: [a]\nports: [{number: 0, name: 'a b', protocol: SPDY, targetPort: 70000}]", []string{
			"error FieldValueInvalid spec.ports[0].number", "error FieldValueInvalid spec.ports[0].name",
			"error FieldValueNotSupported spec.ports[0].protocol", "error FieldValueInvalid spec.ports[0].targetPort"}},
		{"unknown location", ports + "location: INSIDE", []string{"error FieldValueNotSupported spec.location"}},
		{"unknown resolution", ports + "resolution: dns", []string{"error FieldValueNotSupported spec.resolution"}},
		{"bad address", ports + "addresses: [a.b]", []string{"error FieldValueInvalid spec.addresses[0]"}},
		{"range by DNS", ports + "addresses: [10.0.0.0/8]\nresolution: DNS", []string{"error FieldValueInvalid spec.addresses[0]"}},
		{"range by NONE", ports + "addresses: [10.0.0.0/8]", nil},

		{"STATIC without endpoints", ports + "resolution: STATIC", []string{"warning NotHonoured spec.endpoints"}},
		{"STATIC with host name", ports + "resolution: STATIC\nendpoints: [{address: a.b}]", []string{"error FieldValueInvalid spec.endpoints[0].address"}},
		{"STATIC with socket", ports + "resolution: STATIC\nendpoints: [{address: unix:///run/a}]", nil},
		{"socket and two ports", "hosts: [a]\nports: [{number: 80, name: b}, {number: 81, name: c}]\nresolution: STATIC\nendpoints: [{address: unix:///run/a}]", []string{"error FieldValueInvalid spec.ports"}},
		{"NONE with endpoints", ports + "endpoints: [{address: 10.0.0.1}]", []string{"error FieldValueForbidden spec.endpoints"}},
		{"NONE with target port", "hosts: [a]\nports: [{number: 80, name: http, targetPort: 8080}]\n", nil},
		{"NONE with selector", ports + "workloadSelector: {labels: {a: b}}", []string{"warning NotHonoured spec.workloadSelector"}},
		{"DNS", ports + "resolution: DNS\nendpoints: [{address: a.b}, {address: 10.0.0.1}]", nil},
		{"DNS with upper case", ports + "resolution: DNS\nendpoints: [{address: A.Example}]", nil},
		{"DNS of wildcard", "hosts: ['*.b']\nports: [{number: 80, name: http}]\nresolution: DNS", []string{"error FieldValueInvalid spec.hosts[0]"}},
		{"DNS with socket", ports + "resolution: DNS\nendpoints: [{address: unix:///run/a}]", []string{"error FieldValueInvalid spec.endpoints[0].address"}},
		{"DNS_ROUND_ROBIN with two", ports + "resolution: DNS_ROUND_ROBIN\nendpoints: [{address: a.b}, {address: c.d}]", []string{"error FieldValueInvalid spec.endpoints"}},
		{"DYNAMIC_DNS of host", ports + "resolution: DYNAMIC_DNS", []string{"error FieldValueInvalid spec.hosts[0]", "warning NotHonoured spec.resolution"}},
		{"DYNAMIC_DNS with endpoints", "hosts: ['*.b']\nports: [{number: 80, name: http, protocol: HTTP}]\nresolution: DYNAMIC_DNS\nendpoints: [{address: a.b}]", []string{"warning NotHonoured spec.resolution", "error FieldValueForbidden spec.endpoints"}},
		{"DYNAMIC_DNS with addresses", "hosts: ['*.b']\nports: [{number: 443, name: tls, protocol: TLS}]\nresolution: DYNAMIC_DNS\naddresses: [10.0.0.1]", []string{"warning NotHonoured spec.resolution", "error FieldValueForbidden spec.addresses"}},
		{"DYNAMIC_DNS by TCP", "hosts: ['*.b']\nports: [{number: 80, name: tcp}]\nresolution: DYNAMIC_DNS", []string{"error FieldValueNotSupported spec.ports[0].protocol", "warning NotHonoured spec.resolution"}},
		{"selector and endpoints", ports + "resolution: STATIC\nendpoints: [{address: 10.0.0.1}]\nworkloadSelector: {labels: {a: b}}", []string{"error FieldValueForbidden spec.workloadSelector"}},
		{"selector without labels", ports + "resolution: STATIC\nworkloadSelector: {}", []string{"warning NotHonoured spec.workloadSelector"}},
		{"selector with wildcard", ports + "resolution: STATIC\nworkloadSelector: {labels: {a: '*'}}", []string{"error FieldValueInvalid spec.workloadSelector.labels.a"}},
		{"port of endpoint that the service has not", ports + "resolution: STATIC\nendpoints: [{address: 10.0.0.1, ports: {https: 1}}]", []string{"error FieldValueInvalid spec.endpoints[0].ports.https"}},
		{"endpoint without address", ports + "resolution: STATIC\nendpoints: [{labels: {a: b}}]", []string{"error FieldValueRequired spec.endpoints[0].address"}},
		{"bad export", ports + "exportTo: [A]", []string{"error FieldValueInvalid spec.exportTo[0]"}},
		{"export to the own namespace twice", ports + "exportTo: [., default]", []string{"error FieldValueDuplicate spec.exportTo[1]"}},
		{"export to none", ports + "exportTo: ['~']", nil},
		{"export to all and one", ports + "exportTo: [a, '*', a]", []string{"error FieldValueInvalid spec.exportTo[1]", "error FieldValueDuplicate spec.exportTo[2]"}},
	})
}
