package schema

import "testing"

func TestGateway(t *testing.T) {
	const http = "servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']"
	const https = "servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [a.b], tls: "
	testSpecs(t, "networking.istio.io/v1", "Gateway", []specCase{
		{"plain", http + "}]", nil},
		{"selector", "selector: {istio: ingress}\n" + http + "}]", nil},
		{"nothing", "{}", []string{"error FieldValueRequired spec.servers"}},
		{"no servers", "servers: []", []string{"error FieldValueInvalid spec.servers"}},
		{"empty server", "servers: [{}]", []string{"error FieldValueRequired spec.servers[0].hosts", "error FieldValueRequired spec.servers[0].port"}},
		{"empty port", "servers: [{port: {}, hosts: ['*']}]", []string{
			"error FieldValueRequired spec.servers[0].port.name", "error FieldValueRequired spec.servers[0].port.number", "error FieldValueRequired spec.servers[0].port.protocol"}},
		{"hosts of no namespace", "servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['~/a.b']}]", []string{"error FieldValueInvalid spec.servers[0].hosts[0]"}},
		{"hosts", "servers: [{port: {number: 80, name: http, protocol: http}, hosts: [a.b, '*.b', '*/a.b', A.b, ./*, n/*.c, 10.0.0.1]}]", nil},
		{"bad hosts", "servers: [{port: {number: 80, name: http, protocol: http}, hosts: [short, '*-a.b', outbound_80_._.a.b, n/m/a.b, n/]}]", []string{
			"error FieldValueInvalid spec.servers[0].hosts[0]", "error FieldValueInvalid spec.servers[0].hosts[1]", "error FieldValueInvalid spec.servers[0].hosts[2]",
			"error FieldValueInvalid spec.servers[0].hosts[3]", "error FieldValueInvalid spec.servers[0].hosts[4]"}},
		{"hosts of another mesh, TLS ended", https + "{mode: SIMPLE, credentialName: a}}, {port: {number: 1, name: b, protocol: TLS}, hosts: [outbound_.80_._.a.b], tls: {mode: PASSTHROUGH}}]", []string{"error FieldValueInvalid spec.servers[1].hosts[0]"}},
		{"hosts of another mesh", "servers: [{port: {number: 80, name: a, protocol: TLS}, hosts: [outbound_.80_._.a.b, n/outbound_.80_.v1_.a.b], tls: {mode: AUTO_PASSTHROUGH}}]", nil},
		{"port name twice", "servers: [{port: {number: 80, name: a, protocol: HTTP}, hosts: ['*'], name: s}, {port: {number: 81, name: a, protocol: HTTP}, hosts: ['*'], name: s}]", []string{
			"error FieldValueDuplicate spec.servers[1].port.name", "error FieldValueDuplicate spec.servers[1].name"}},
		{"unknown protocol", "servers: [{port: {number: 80, name: a, protocol: SPDY}, hosts: ['*']}]", []string{"error FieldValueNotSupported spec.servers[0].port.protocol"}},
		{"port 0", "servers: [{port: {number: 0, name: a, protocol: TCP}, hosts: ['*']}]", []string{"error FieldValueInvalid spec.servers[0].port.number"}},
		{"socket", "servers: [{port: {number: 0, name: a, protocol: TCP}, hosts: ['*'], bind: unix:///run/a}]", nil},
		{"socket and port", "servers: [{port: {number: 1, name: a, protocol: TCP}, hosts: ['*'], bind: unix://run}]", []string{
			"error FieldValueInvalid spec.servers[0].port.number", "error FieldValueInvalid spec.servers[0].bind"}},
		{"bind", http + ", bind: 127.0.0.1}]", nil},
		{"bind to all", http + ", bind: 0.0.0.0}]", nil},
		{"bind to a name", http + ", bind: localhost}]", []string{"error FieldValueInvalid spec.servers[0].bind"}},
		{"what has no effect", "servers: [{port: {number: 80, name: a, protocol: HTTP, targetPort: 81}, hosts: ['*'], defaultEndpoint: 127.0.0.1:80}]", []string{
			"error FieldValueNotSupported spec.servers[0].port.targetPort", "error FieldValueNotSupported spec.servers[0].defaultEndpoint"}},

		{"redirect to HTTPS", http + ", tls: {httpsRedirect: true}}]", nil},
		{"plain with TLS", http + ", tls: {mode: SIMPLE, credentialName: a}}]", []string{"error FieldValueForbidden spec.servers[0].tls"}},
		{"TCP with TLS", "servers: [{port: {number: 80, name: a, protocol: TCP}, hosts: ['*'], tls: {httpsRedirect: true}}]", []string{
			"error FieldValueForbidden spec.servers[0].tls", "warning NotHonoured spec.servers[0].tls.httpsRedirect"}},
		{"HTTPS without TLS", "servers: [{port: {number: 443, name: a, protocol: https}, hosts: ['*']}]", []string{"error FieldValueRequired spec.servers[0].tls"}},
		{"passed through", https + "{mode: PASSTHROUGH}}]", nil},
		{"passed through with certificates", https + "{credentialName: a}}]", []string{"warning NotHonoured spec.servers[0].tls.mode"}},
		{"files", https + "{mode: SIMPLE, serverCertificate: /a, privateKey: /b, minProtocolVersion: TLSV1_2, cipherSuites: [ECDHE-RSA-AES256-GCM-SHA384]}}]", nil},
		{"secret", https + "{mode: MUTUAL, credentialName: a}}]", nil},
		{"no certificate", https + "{mode: SIMPLE}}]", []string{"error FieldValueRequired spec.servers[0].tls.privateKey", "error FieldValueRequired spec.servers[0].tls.serverCertificate"}},
		{"no authorities", https + "{mode: MUTUAL, serverCertificate: /a, privateKey: /b}}]", []string{"error FieldValueRequired spec.servers[0].tls.caCertificates"}},
		{"two certificates", https + "{mode: SIMPLE, tlsCertificates: [{serverCertificate: /a, privateKey: /b}, {serverCertificate: /c}]}}]", []string{
			"error FieldValueRequired spec.servers[0].tls.tlsCertificates[1].privateKey"}},
		{"two sources", https + "{mode: SIMPLE, credentialName: a, credentialNames: [b], serverCertificate: /a, privateKey: /b}}]", []string{
			"error FieldValueForbidden spec.servers[0].tls.credentialNames", "error FieldValueForbidden spec.servers[0].tls.serverCertificate"}},
		{"of the mesh", https + "{mode: ISTIO_MUTUAL}}]", nil},
		{"of the mesh and of a secret", https + "{mode: ISTIO_MUTUAL, credentialName: a}}]", []string{"error FieldValueForbidden spec.servers[0].tls"}},
		{"revoked", https + "{mode: SIMPLE, serverCertificate: /a, privateKey: /b, caCrl: /c}}]", []string{"error FieldValueForbidden spec.servers[0].tls.caCrl"}},
		{"revoked beside secret", https + "{mode: MUTUAL, credentialName: a, caCrl: /c}}]", []string{"warning NotHonoured spec.servers[0].tls.caCrl"}},
		{"secret beside files", https + "{mode: SIMPLE, credentialName: a, serverCertificate: /a, privateKey: /b}}]", []string{"warning NotHonoured spec.servers[0].tls.serverCertificate"}},
		{"old TLS", https + "{mode: SIMPLE, credentialName: a, minProtocolVersion: TLSV1_0}}]", []string{"warning NotHonoured spec.servers[0].tls.minProtocolVersion"}},
		{"unknown mode", https + "{mode: BOTH}}]", []string{"error FieldValueNotSupported spec.servers[0].tls.mode"}},
	})
}
