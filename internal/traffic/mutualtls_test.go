package traffic_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// meshCertificates are certificates of workloads, and of somebody else.
type meshCertificates struct {
	dir       string
	authority *selfsigned.Authority
}

func newMeshCertificates(t *testing.T) meshCertificates {
	t.Helper()
	dir := t.TempDir()
	c := meshCertificates{dir, selfsigned.NewAuthority(t, dir)}
	c.authority.Issue(t, "caller", "spiffe://cluster.local/ns/default/sa/caller")
	c.authority.Issue(t, "shop", "spiffe://cluster.local/ns/default/sa/shop")
	c.authority.Issue(t, "foreign-domain", "spiffe://other.example/ns/default/sa/caller")
	c.authority.Issue(t, "nameless")
	selfsigned.Write(t, filepath.Join(dir, "stranger.crt"), filepath.Join(dir, "stranger.key"))
	return c
}

func (c meshCertificates) file(name string) string { return filepath.Join(c.dir, name) }

func (c meshCertificates) pair(t *testing.T, name string) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.file(name+".crt"), c.file(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// settings are those of a mesh whose proxies have the certificate of a workload.
func (c meshCertificates) settings(workload string) *mesh.Settings {
	settings := mesh.DefaultSettings()
	settings.WorkloadCertificates.Certificate = mesh.Certificate{CertificateFile: c.file(workload + ".crt"), KeyFile: c.file(workload + ".key"), CAFile: c.file("authority.crt")}
	return settings
}

// firstLine returns the first line of the answer to a request, or "" if the connection is
// closed.
func firstLine(conn net.Conn, request string) string {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte(request)); err != nil {
		return ""
	}
	buffer := make([]byte, 4096)
	n, _ := conn.Read(buffer)
	line, _, _ := strings.Cut(string(buffer[:n]), "\r\n")
	return line
}

// TestWhoMayCallAWorkload sends requests of callers with all kinds of certificates, and
// without, to the ports of a workload in all modes, through a real Envoy.
//
// Observes PeerAuthentication mtls.mode portLevelMtls.<name>.mode selector.matchLabels
func TestWhoMayCallAWorkload(t *testing.T) {
	outside.Slow(t)
	certificates := newMeshCertificates(t)
	port := answering(t, "app")
	ports, levels := "", ""
	modes := []string{"STRICT", "PERMISSIVE", "DISABLE"}
	number := func(mode int, protocol string) int {
		if protocol == "TCP" {
			return 100 + mode
		}
		return 80 + mode
	}
	for i, mode := range modes {
		for _, protocol := range []string{"HTTP", "TCP"} {
			n := number(i, protocol)
			ports += fmt.Sprintf("  - {number: %d, name: p%d, protocol: %s}\n", n, n, protocol)
			levels += fmt.Sprintf("    %d: {mode: %s}\n", n, mode)
		}
	}
	ingress := ""
	for i := range modes {
		for _, protocol := range []string{"HTTP", "TCP"} {
			ingress += fmt.Sprintf("  - {port: {number: %d, protocol: %s, name: a}, defaultEndpoint: '127.0.0.1:%d'}\n", number(i, protocol), protocol, port)
		}
	}
	e := startCompiled(t, certificates.settings("shop"), callerNode, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: caller}
spec:
  hosts: [caller.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
%s
  endpoints: [{address: 10.0.0.7, labels: {app: shop}}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: caller}
spec:
  ingress:
%s
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default}
spec: {mtls: {mode: STRICT}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  portLevelMtls:
%s
`, ports, ingress, levels))
	authority := x509.NewCertPool()
	authority.AddCert(certificates.authority.Certificate)
	begin := func(conn net.Conn, certificate string, protocols ...string) net.Conn {
		settings := &tls.Config{InsecureSkipVerify: true, NextProtos: protocols}
		if certificate != "" {
			settings.Certificates = []tls.Certificate{certificates.pair(t, certificate)}
		}
		return tls.Client(conn, settings)
	}
	callers := map[string]func(net.Conn) net.Conn{
		"plain":              func(conn net.Conn) net.Conn { return conn },
		"mutual":             func(conn net.Conn) net.Conn { return begin(conn, "caller", "istio") },
		"mutual, unmarked":   func(conn net.Conn) net.Conn { return begin(conn, "caller") },
		"no certificate":     func(conn net.Conn) net.Conn { return begin(conn, "", "istio") },
		"foreign domain":     func(conn net.Conn) net.Conn { return begin(conn, "foreign-domain", "istio") },
		"no name":            func(conn net.Conn) net.Conn { return begin(conn, "nameless", "istio") },
		"unknown authority":  func(conn net.Conn) net.Conn { return begin(conn, "stranger", "istio") },
		"no certificate, no": func(conn net.Conn) net.Conn { return begin(conn, "") },
	}
	for caller, dial := range callers {
		for i, mode := range modes {
			for _, protocol := range []string{"HTTP", "TCP"} {
				want := false
				switch mode {
				case "STRICT":
					want = caller == "mutual" || caller == "mutual, unmarked"
				case "PERMISSIVE":
					want = caller == "mutual" || caller == "plain"
				case "DISABLE":
					want = caller == "plain"
				}
				got := firstLine(dial(e.Captured("10.0.0.7", number(i, protocol))), envoytest.Get("shop", "/"))
				if strings.HasPrefix(got, "HTTP/1.1 200") != want {
					t.Errorf("%s to a port of %s in mode %s: %q, want an answer: %v", caller, protocol, mode, got, want)
				}
			}
		}
	}
}

// TestCallersUseMutualTLS checks that a proxy uses mutual TLS to the endpoints that take it,
// verifies their account, and sends others plain text, through a real Envoy.
//
// Observes WorkloadEntry serviceAccount
// Observes ServiceEntry endpoints[].serviceAccount
func TestCallersUseMutualTLS(t *testing.T) {
	outside.Slow(t)
	certificates := newMeshCertificates(t)
	authority := x509.NewCertPool()
	authority.AddCert(certificates.authority.Certificate)
	secured := func(certificate string) int {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "by %s", r.TLS.PeerCertificates[0].URIs[0])
		}))
		// It negotiates no application protocol, as the proxy of a workload.
		s.Listener = tls.NewListener(s.Listener, &tls.Config{
			Certificates: []tls.Certificate{certificates.pair(t, certificate)}, ClientCAs: authority, ClientAuth: tls.RequireAndVerifyClientCert,
		})
		s.Start()
		t.Cleanup(s.Close)
		return envoytest.Port(s)
	}
	const marked = "labels: {security.istio.io/tlsMode: istio}"
	entry := func(name string, port int, more string) string {
		return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s}
spec:
  hosts: [%[1]s.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: %[2]d}]
  endpoints: [{address: 127.0.0.1, %[3]s}]
---
`, name, port, more)
	}
	objects := entry("secured", secured("shop"), marked+", serviceAccount: shop") +
		entry("unnamed", secured("shop"), marked) +
		entry("imposter", secured("caller"), marked+", serviceAccount: shop") +
		entry("foreign", secured("foreign-domain"), marked) +
		entry("plain", answering(t, "plain"), "labels: {a: b}") +
		entry("liar", answering(t, "liar"), marked) +
		entry("overruled", answering(t, "overruled"), marked) + `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: overruled}
spec: {host: overruled.example, trafficPolicy: {tls: {mode: DISABLE}}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: unsecured}
spec:
  selector: {matchLabels: {tls: none}}
  mtls: {mode: DISABLE}
---
` + entry("unsecured", answering(t, "unsecured"), `labels: {security.istio.io/tlsMode: istio, tls: none}`)
	e := startCompiled(t, certificates.settings("caller"), "sidecar~10.9.9.9~caller.default~default.svc.cluster.local", objects)
	for host, want := range map[string]string{
		"secured": "by spiffe://cluster.local/ns/default/sa/caller", "unnamed": "by spiffe://cluster.local/ns/default/sa/caller",
		"imposter": unavailable, "foreign": unavailable, "plain": "plain", "liar": unavailable, "overruled": "overruled", "unsecured": "unsecured",
	} {
		if got := envoytest.Exchange(t, e.Captured("192.0.2.1", 80), envoytest.Get(host+".example", "/")); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}
