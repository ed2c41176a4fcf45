package traffic_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// gatewayServers has the TLS settings of servers, each at a port of its own, and the names of
// the clients that the server lets in. In the settings, CERTS stands for the folder of the
// certificates.
var gatewayServers = []struct {
	tls  string
	lets []string
}{
	{"mode: SIMPLE, " + frontPair, []string{"none", "client", "other", "revoked", "stranger"}},
	{"mode: OPTIONAL_MUTUAL, caCertificates: CERTS/authority.crt, " + frontPair, []string{"none", "client", "other", "revoked"}},
	{"mode: MUTUAL, caCertificates: CERTS/authority.crt, " + frontPair, []string{"client", "other", "revoked"}},
	{"mode: MUTUAL, caCertificates: CERTS/authority.crt, subjectAltNames: [client], " + frontPair, []string{"client"}},
	{"mode: MUTUAL, caCertificates: CERTS/authority.crt, caCrl: CERTS/authority.crl, " + frontPair, []string{"client", "other"}},
	{"mode: OPTIONAL_MUTUAL, caCertificates: CERTS/authority.crt, caCrl: CERTS/authority.crl, " + frontPair, []string{"none", "client", "other"}},
	{"mode: MUTUAL, credentialName: front", []string{"client", "other"}},
	{"mode: MUTUAL, credentialName: pair, caCertCredentialName: front", []string{"client", "other"}},
	{"mode: MUTUAL, credentialNames: [pair, front]", []string{"client", "other"}},
	{"mode: MUTUAL, caCertificates: CERTS/authority.crt, verifyCertificateHash: ['HASH'], " + frontPair, []string{"other"}},
	{"mode: MUTUAL, caCertificates: CERTS/authority.crt, verifyCertificateSpki: ['SPKI'], " + frontPair, []string{"other"}},
	{"mode: MUTUAL, caCertificates: CERTS/authority.crt, insecureSkipVerify: true, " + frontPair, []string{"client", "other", "revoked", "stranger"}},
	{"mode: MUTUAL, caCertificates: CERTS/authority.crt, tlsCertificates: [{" + frontPair + "}, {serverCertificate: CERTS/side.crt, privateKey: CERTS/side.key}]", []string{"client", "other", "revoked"}},
	{"mode: ISTIO_MUTUAL", []string{"client", "other", "revoked"}},
	{"mode: SIMPLE, minProtocolVersion: TLSV1_3, " + frontPair, nil},
}

const frontPair = "serverCertificate: CERTS/front.crt, privateKey: CERTS/front.key"

// TestClientsOfAGateway checks that each server lets in the clients that its settings allow,
// and no others. All clients speak TLS 1.2 at most.
//
// Observes Gateway servers[].tls.mode servers[].tls.caCertificates servers[].tls.subjectAltNames servers[].tls.caCrl servers[].tls.credentialName
// Observes Gateway servers[].tls.caCertCredentialName servers[].tls.credentialNames servers[].tls.verifyCertificateHash servers[].tls.verifyCertificateSpki
// Observes Gateway servers[].tls.insecureSkipVerify servers[].tls.minProtocolVersion servers[].tls.serverCertificate servers[].tls.privateKey
// Observes Gateway servers[].tls.tlsCertificates[].serverCertificate servers[].tls.tlsCertificates[].privateKey
func TestClientsOfAGateway(t *testing.T) {
	dir := t.TempDir()
	clients := gatewayClients(t, dir)
	file := func(name string) string { return filepath.Join(dir, name) }
	front := mesh.Certificate{CertificateFile: file("front.crt"), KeyFile: file("front.key")}
	settings := mesh.DefaultSettings()
	settings.WorkloadCertificates.Certificate = mesh.Certificate{CertificateFile: front.CertificateFile, KeyFile: front.KeyFile, CAFile: file("authority.crt")}
	settings.IngressCertificates = map[string]mesh.Certificate{"pair": front}
	front.CAFile, front.CRLFile = file("authority.crt"), file("authority.crl")
	settings.IngressCertificates["front"] = front

	cfg, _ := compiledFor(t, settings, routerNode, gatewayFor(clients["other"], dir))
	e := envoytest.Start(t, selfContained(t, cfg))
	for i, server := range gatewayServers {
		for name, client := range clients {
			conn := tls.Client(e.Dial(fmt.Sprintf("http_0.0.0.0_%d", 8400+i)), &tls.Config{
				ServerName: "web.example", InsecureSkipVerify: true, // The test is about the other direction.
				MaxVersion:           tls.VersionTLS12,
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &client, nil },
			})
			answer := envoytest.Exchange(t, conn, envoytest.Get("web.example", "/"))
			if let := strings.Contains(" "+strings.Join(server.lets, " ")+" ", " "+name+" "); let != strings.Contains(answer, "200 OK") || !let && answer != "" {
				t.Errorf("%s: let in is to be %v for %s, found %q", server.tls, let, name, answer)
			}
		}
	}
	for i, server := range gatewayServers {
		if !strings.Contains(server.tls, "side.crt") {
			continue
		}
		for _, name := range []string{"front", "side"} {
			client := clients["client"]
			conn := tls.Client(e.Dial(fmt.Sprintf("http_0.0.0.0_%d", 8400+i)), &tls.Config{
				ServerName: name, InsecureSkipVerify: true, Certificates: []tls.Certificate{client},
			})
			if err := conn.Handshake(); err != nil {
				t.Fatal(err)
			}
			if shown := conn.ConnectionState().PeerCertificates[0].DNSNames[0]; shown != name {
				t.Errorf("a client that asks for %s sees the certificate of %s", name, shown)
			}
			_ = conn.Close()
		}
	}
}

// gatewayClients writes the files of the clients and servers to a folder, and returns the
// certificates of the clients by their names. The client none has no certificate, and the
// certificate of stranger is from another authority.
func gatewayClients(t *testing.T, dir string) map[string]tls.Certificate {
	t.Helper()
	authority := selfsigned.NewAuthority(t, dir)
	out := map[string]tls.Certificate{"none": {}}
	load := func(name string) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = pair
	}
	for _, name := range []string{"client", "other", "revoked"} {
		authority.Issue(t, name)
		load(name)
	}
	for _, name := range []string{"front", "side"} {
		authority.Issue(t, name)
	}
	selfsigned.Write(t, filepath.Join(dir, "stranger.crt"), filepath.Join(dir, "stranger.key"))
	load("stranger")
	authority.Revoke(t, "revoked")
	return out
}

// gatewayFor returns objects with a Gateway that has the gatewayServers. In their settings,
// HASH and SPKI stand for the hashes of the pinned certificate and of its key.
func gatewayFor(pinned tls.Certificate, dir string) string {
	var servers strings.Builder
	for i, server := range gatewayServers {
		fmt.Fprintf(&servers, "  - {port: {number: %d, name: https-%d, protocol: HTTPS}, hosts: ['*'], tls: {%s}}\n", 8400+i, i, server.tls)
	}
	certificate, key := sha256.Sum256(pinned.Leaf.Raw), sha256.Sum256(pinned.Leaf.RawSubjectPublicKeyInfo)
	return strings.NewReplacer("CERTS", dir, "HASH", hex.EncodeToString(certificate[:]), "SPKI", base64.StdEncoding.EncodeToString(key[:])).Replace(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: default}
spec:
  hosts: [web.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.1}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: default}
spec:
  servers:
` + servers.String() + `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: default}
spec:
  hosts: [web.example]
  gateways: [edge]
  http: [{route: [{destination: {host: web}}]}]
`)
}
