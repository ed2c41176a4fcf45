package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// secretsGateway serves two hosts on a port, each by the secret of its name.
const secretsGateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers:
  - port: {number: %[1]d, name: first, protocol: HTTPS}
    hosts: [first.example]
    tls: {mode: SIMPLE, credentialName: first}
  - port: {number: %[1]d, name: second, protocol: HTTPS}
    hosts: [second.example]
    tls: {mode: MUTUAL, credentialName: second}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: hosts}
spec:
  hosts: [first.example, second.example]
  gateways: [edge]
  http:
  - directResponse: {status: 204}
`

// TestSecretsReachAnEnvoy by whatever way it asks for its configuration.
func TestSecretsReachAnEnvoy(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	for _, api := range []string{"delta", "ads", "rest"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			secretsReach(t, api)
		})
	}
}

func secretsReach(t *testing.T, api string) {
	w := openSecrets(t, api)
	w.issue("first", "first.example")
	w.write(fmt.Sprintf(secretsGateway, w.port))
	w.shows("first.example", "first.example")
	w.closed("second.example")

	// A rotation: who is connected stays so, who comes sees the new one.
	held := w.connect("first.example")
	before := w.listeners()
	w.issue("first", "rotated.example")
	w.shows("first.example", "rotated.example")
	w.serves(held)
	if after := w.listeners(); after != before {
		t.Errorf("the listeners became\n%s\nand were\n%s", after, before)
	}

	// The one that was missing comes and goes, the other stays.
	w.issue("second", "second.example")
	w.shows("second.example", "second.example")
	if _, err := w.reach(t.Context(), "second.example", nil); err == nil {
		t.Error("a client without a certificate got in")
	}
	w.serves(held)
	w.do("delete", "secret", "second")
	w.wait("second.example to be closed", func(ctx context.Context) error {
		if _, err := w.reach(ctx, "second.example", w.client); err == nil {
			return errors.New("it is open")
		}
		return nil
	})
	w.shows("first.example", "rotated.example")
}

// TestKeysWithheld: an Envoy that asks over TCP is sent no private key. Its listener is
// closed, whoever waits for the Gateway is told why, and a rule that needs no key works.
func TestKeysWithheld(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"delta", "ads", "rest"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			w := openSecretsAs(t, nil, "--api", api, "--socket=false")
			w.issue("first", "first.example")
			w.write(fmt.Sprintf(secretsGateway, w.port))
			w.wait("the proxy's status to say what it lacks", func(ctx context.Context) error {
				text, err := w.pilot.Istioctl(ctx, "proxy-status", "-o", "wide")
				if err == nil && !strings.Contains(string(text), "secrets: default/first: private keys are sent only over") {
					err = fmt.Errorf("it is\n%s", text)
				}
				return err
			})
			for _, object := range []string{"gateway/edge", "secret/first"} {
				if text, err := w.pilot.Istioctl(t.Context(), "wait", object, "--timeout", "1s"); err == nil || !strings.Contains(err.Error(), "is not sent its secrets") {
					t.Errorf("wait for %s: %v\n%s", object, err, text)
				}
			}
			w.closed("first.example")
			dump, err := fetch(t.Context(), w.envoy.Admin+"/config_dump")
			if err != nil || strings.Contains(string(dump), "BEGIN CERTIFICATE") {
				t.Errorf("the Envoy has a certificate: %v", err)
			}
		})
	}
}

// withSecrets is an Envoy at the edge of a mesh of secrets.
type withSecrets struct {
	t         *testing.T
	pilot     *Pilot
	envoy     *Sidecar
	port      int
	authority *selfsigned.Authority
	client    *tls.Certificate // as clients show it
}

// openSecrets has an Envoy ask by an API of a server with the arguments.
func openSecrets(t *testing.T, api string, args ...string) *withSecrets {
	t.Helper()
	return openSecretsAs(t, args, "--api", api)
}

// openSecretsAs has an Envoy ask by a bootstrap with the options.
func openSecretsAs(t *testing.T, args []string, options ...string) *withSecrets {
	t.Helper()
	return openSecretsBy(t, args, nil, options...)
}

// openSecretsBy is openSecretsAs with flags of the Envoy.
func openSecretsBy(t *testing.T, args, flags []string, options ...string) *withSecrets {
	t.Helper()
	program := outside.Tool(t, "envoy")
	w := &withSecrets{t: t, pilot: openPilot(t, append(args, "--data-dir", t.TempDir())...), authority: selfsigned.NewAuthority(t, t.TempDir())}
	w.pilot.programs.Envoy, w.pilot.programs.EnvoyFlags = program, flags
	var err error
	if w.port, err = testbed.FreePort(); err != nil {
		t.Fatal(err)
	}
	certificate, key := w.authority.PEM(t, "client.example")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	w.client = &pair
	const node = "router~127.0.0.61~edge.default~default.svc.cluster.local"
	// It outlives t.Context, so that it ends before the server.
	if w.envoy, err = StartSidecar(context.WithoutCancel(t.Context()), w.pilot, t.TempDir(), node, options...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.envoy.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("Envoy:\n%s", w.envoy.Tail())
		}
	})
	return w
}

// issue has a new certificate for the host in a Secret, with the authority.
func (w *withSecrets) issue(name, host string) {
	w.t.Helper()
	certificate, key := w.authority.PEM(w.t, host)
	text, err := json.Marshal(map[string]any{
		"apiVersion": "registry.istio.io/v1", "kind": "Secret", "metadata": map[string]any{"name": name},
		"spec": map[string]string{"certificate": certificate, "privateKey": key, "caCertificates": w.authority.AuthorityPEM(w.t)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(string(text))
}

func (w *withSecrets) write(text string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.do("apply", "-f", file)
}

func (w *withSecrets) do(args ...string) {
	w.t.Helper()
	if _, err := w.pilot.Istioctl(w.t.Context(), args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *withSecrets) wait(what string, try func(context.Context) error) {
	w.t.Helper()
	if err := until(w.t.Context(), what, w.envoy.Process, try); err != nil {
		w.t.Fatal(err)
	}
}

// shows waits until new connections for the host are shown a certificate of the
// name and served.
func (w *withSecrets) shows(host, name string) {
	w.t.Helper()
	w.wait(host+" to be shown as "+name, func(ctx context.Context) error {
		shown, err := w.reach(ctx, host, w.client)
		if err == nil {
			err = shown.VerifyHostname(name)
		}
		return err
	})
}

func (w *withSecrets) closed(host string) {
	w.t.Helper()
	if _, err := w.reach(w.t.Context(), host, w.client); err == nil {
		w.t.Errorf("%s is open", host)
	}
}

// reach is shown a certificate over a connection of its own. It is a request that
// tells: with TLS 1.3 a client whose certificate is missed thinks it is connected.
func (w *withSecrets) reach(ctx context.Context, host string, client *tls.Certificate) (*x509.Certificate, error) {
	conn, err := w.dial(ctx, host, client)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], conn.ask()
}

// lasting is a connection for a host that is kept.
type lasting struct {
	*tls.Conn
	host string
	read *bufio.Reader
}

func (w *withSecrets) dial(ctx context.Context, host string, client *tls.Certificate) (*lasting, error) {
	authorities := x509.NewCertPool()
	authorities.AddCert(w.authority.Certificate)
	// Which name it has is for the caller to see.
	config := &tls.Config{ServerName: host, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authorities})
		return err
	}}
	if client != nil {
		config.Certificates = []tls.Certificate{*client}
	}
	d := tls.Dialer{Config: config}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port)))
	if err != nil {
		return nil, err
	}
	return &lasting{conn.(*tls.Conn), host, bufio.NewReader(conn)}, nil
}

// connect leaves the connection open until the test ends.
func (w *withSecrets) connect(host string) *lasting {
	w.t.Helper()
	return w.connectAs(host, w.client)
}

// connectAs is connect for a client with the certificate, nil for none.
func (w *withSecrets) connectAs(host string, client *tls.Certificate) *lasting {
	w.t.Helper()
	conn, err := w.dial(w.t.Context(), host, client)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	w.serves(conn)
	return conn
}

func (w *withSecrets) serves(conn *lasting) {
	w.t.Helper()
	if err := conn.ask(); err != nil {
		w.t.Fatal(err)
	}
}

func (c *lasting) ask() error {
	resp, err := c.get()
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent || resp.Close {
		return fmt.Errorf("%s: %s, closing %v", c.host, resp.Status, resp.Close)
	}
	return nil
}

// get is one request over the connection.
func (c *lasting) get() (*http.Response, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", c.host); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return nil, err
	}
	return resp, resp.Body.Close()
}

// listeners are as the Envoy has them, with their versions and when it got them.
func (w *withSecrets) listeners() string {
	w.t.Helper()
	text, err := fetch(w.t.Context(), w.envoy.Admin+"/config_dump?resource=dynamic_listeners")
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}
