package traffic_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// A tlsCase has a ServiceEntry and a DestinationRule with TLS settings for a host. The
// host's endpoint shows the certificate of the host that shows names. In the settings, CERTS
// stands for the folder of the certificates.
type tlsCase struct {
	host, shows, tls string
	entry            string // more of the ServiceEntry
	ask              string // a Host header; that of the host when ""
	want             string // in the answer
}

const unavailable = "503 Service Unavailable"

var tlsCases = []tlsCase{
	{host: "system.example", shows: "system.example", tls: "mode: SIMPLE", want: "asked for system.example by nobody"},
	{host: "imposter.example", shows: "other.example", tls: "mode: SIMPLE", want: unavailable},
	{host: "foreign.example", shows: "foreign.example", tls: "mode: SIMPLE, caCertificates: CERTS/stranger.crt", want: unavailable},
	{host: "asked.example", shows: "other.example", tls: "mode: SIMPLE, sni: other.example", want: "asked for other.example by nobody"},
	{host: "misnamed.example", shows: "misnamed.example", tls: "mode: SIMPLE, sni: other.example", want: unavailable},
	{host: "any.example", shows: "any.example", tls: "mode: SIMPLE, sni: other.example, caCertificates: CERTS/authority.crt", want: "asked for other.example by nobody"},
	{host: "named.example", shows: "other.example", tls: "mode: SIMPLE, subjectAltNames: [a.example, other.example]", want: "asked for named.example by nobody"},
	{host: "declared.example", shows: "other.example", tls: "mode: SIMPLE", entry: "subjectAltNames: [other.example]", want: "asked for declared.example by nobody"},
	{host: "denied.example", shows: "denied.example", tls: "mode: SIMPLE", entry: "subjectAltNames: [other.example]", want: unavailable},
	{host: "overruled.example", shows: "overruled.example", tls: "mode: SIMPLE, subjectAltNames: [overruled.example]", entry: "subjectAltNames: [other.example]", want: "200 OK"},
	{host: "unrevoked.example", shows: "unrevoked.example", tls: "mode: SIMPLE, caCertificates: CERTS/authority.crt, caCrl: CERTS/authority.crl", want: "200 OK"},
	{host: "revoked.example", shows: "revoked.example", tls: "mode: SIMPLE, caCertificates: CERTS/authority.crt, caCrl: CERTS/authority.crl", want: unavailable},
	{host: "revoked-elsewhere.example", shows: "revoked.example", tls: "mode: SIMPLE, caCertificates: CERTS/authority.crt, subjectAltNames: [revoked.example]", want: "200 OK"},
	{host: "mutual.example", shows: "mutual.example", tls: "mode: MUTUAL, clientCertificate: CERTS/other.example.crt, privateKey: CERTS/other.example.key", want: "by other.example"},
	{host: "secret.example", shows: "secret.example", tls: "mode: MUTUAL, credentialName: client", want: "by other.example"},
	{host: "roots.example", shows: "roots.example", tls: "mode: SIMPLE, credentialName: client", want: "by nobody"},
	{host: "unknown.example", shows: "unknown.example", tls: "mode: SIMPLE, credentialName: nowhere", want: unavailable},
	{host: "mesh.example", shows: "mesh.example", tls: "mode: ISTIO_MUTUAL", want: "asked for  by workload.example"},
	{host: "open.example", shows: "other.example", tls: "mode: SIMPLE, insecureSkipVerify: true", want: "asked for open.example by nobody"},
	{host: "*.wild.example", shows: "a.wild.example", tls: "mode: SIMPLE", ask: "a.wild.example", want: "asked for a.wild.example by nobody"},
	{host: "*.tame.example", shows: "a.tame.example", tls: "mode: SIMPLE", ask: "b.tame.example", want: unavailable},
	{host: "port.example", shows: "port.example", tls: "mode: SIMPLE", ask: "port.example:80", want: "asked for port.example by nobody"},
	{host: "rewritten.example", shows: "rewritten.example", tls: "mode: SIMPLE", ask: "alias.example", want: "asked for rewritten.example by nobody"},
}

// TestTLSToEndpoints checks that a proxy sends a request to an endpoint only if the
// endpoint's certificate is for the name that the rule, the service or the request gives, and
// that the endpoint sees that name in TLS.
//
// Observes DestinationRule trafficPolicy.tls.mode trafficPolicy.tls.sni trafficPolicy.tls.caCertificates trafficPolicy.tls.caCrl trafficPolicy.tls.subjectAltNames
// Observes DestinationRule trafficPolicy.tls.clientCertificate trafficPolicy.tls.privateKey trafficPolicy.tls.credentialName trafficPolicy.tls.insecureSkipVerify
// Observes ServiceEntry subjectAltNames
func TestTLSToEndpoints(t *testing.T) {
	outside.Slow(t)
	dir := t.TempDir()
	authority := selfsigned.NewAuthority(t, dir)
	for _, host := range []string{"workload.example", "alias.example"} {
		authority.Issue(t, host)
	}
	selfsigned.Write(t, filepath.Join(dir, "stranger.crt"), filepath.Join(dir, "stranger.key"))
	var objects strings.Builder
	issued := map[string]bool{}
	for i, tc := range tlsCases {
		if !issued[tc.shows] {
			authority.Issue(t, tc.shows)
			issued[tc.shows] = true
		}
		fmt.Fprintf(&objects, tlsObjects, i, tc.host, tellingTLS(t, authority, dir, tc.shows), tc.entry, i, tc.host, tc.tls)
	}
	authority.Revoke(t, "revoked.example")
	objects.WriteString(rewritingObjects)
	file := func(name string) string { return filepath.Join(dir, name) }
	settings := mesh.DefaultSettings()
	settings.SystemRootsFile = file("system.crt")
	roots, err := os.ReadFile(file("authority.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings.SystemRootsFile, roots, 0o600); err != nil {
		t.Fatal(err)
	}
	settings.WorkloadCertificates.Certificate = mesh.Certificate{CertificateFile: file("workload.example.crt"), KeyFile: file("workload.example.key"), CAFile: file("authority.crt")}
	settings.ClientCertificates = map[string]mesh.Certificate{
		"client": {CertificateFile: file("other.example.crt"), KeyFile: file("other.example.key"), CAFile: file("authority.crt")},
	}
	e := startCompiled(t, settings, "sidecar~10.9.9.9~caller.default~default.svc.cluster.local", strings.ReplaceAll(objects.String(), "CERTS", dir))
	for _, tc := range tlsCases {
		t.Run(tc.host, func(t *testing.T) {
			host := tc.ask
			if host == "" {
				host = tc.host
			}
			answer := envoytest.Exchange(t, e.Captured("192.0.2.1", 80), envoytest.Get(host, "/"))
			if !strings.Contains(answer, tc.want) {
				t.Errorf("%s: %q, want %q", tc.tls, answer, tc.want)
			}
		})
	}
}

const tlsObjects = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: h%d}
spec:
  hosts: ["%s"]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: %d}]
  endpoints: [{address: 127.0.0.1}]
  %s
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: h%d}
spec:
  host: "%s"
  trafficPolicy: {tls: {%s}}
---
`

const rewritingObjects = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: alias}
spec:
  hosts: [alias.example]
  location: MESH_EXTERNAL
  resolution: DNS
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: alias}
spec:
  hosts: [alias.example]
  http: [{rewrite: {authority: rewritten.example}, route: [{destination: {host: rewritten.example}}]}]
`

// tellingTLS runs a server that shows the certificate of a host, and returns its port. An
// answer has the server name that the client asked for, and the name in the client's
// certificate.
func tellingTLS(t *testing.T, authority *selfsigned.Authority, dir, host string) int {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, host+".crt"), filepath.Join(dir, host+".key"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(authority.Certificate)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].DNSNames[0]
		}
		fmt.Fprintf(w, "asked for %s by %s\n", r.TLS.ServerName, who)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return envoytest.Port(server)
}
