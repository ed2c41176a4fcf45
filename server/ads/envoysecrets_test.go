package ads_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilot-api/pilot-api/discovery"
	bootstrap "github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/schema"
)

const nodeOfEnvoy = "router~127.0.0.61~edge.default~default.svc.cluster.local"

// edgeWorld is a server, and a real Envoy whose clusters and listeners come over ADS. Its
// bootstrap has a listener more, for each of some Secrets, which takes the Secret from a
// source of its own.
type edgeWorld struct {
	*mesh
	authority *selfsigned.Authority
	public    net.Listener
	private   net.Listener
	stop      func()
	envoy     *envoytest.Envoy
	over      int            // the port of the Gateway, whose Secret comes over ADS
	apart     map[string]int // the ports of the other listeners, by Secret
}

// newEdge serves the Secret a and a Gateway with it.
func newEdge(t *testing.T) *edgeWorld {
	t.Helper()
	w := &edgeWorld{mesh: &mesh{T: t}, authority: selfsigned.NewAuthority(t, t.TempDir()), apart: map[string]int{}}
	w.over = w.freePort()
	w.source = newSource(w.secret("a", "first.example"),
		object("Gateway", "edge", fmt.Sprintf(`{"servers":[{"port":{"number":%d,"name":"https","protocol":"HTTPS"},"hosts":["*"],"tls":{"mode":"SIMPLE","credentialName":"a"}},
			{"port":{"number":%d,"name":"other","protocol":"HTTPS"},"hosts":["*"],"tls":{"mode":"SIMPLE","credentialName":"b"}}]}`, w.over, w.freePort())),
		object("VirtualService", "web", `{"hosts":["*"],"gateways":["edge"],"http":[{"directResponse":{"status":204}}]}`))
	w.public, w.private = w.listen("127.0.0.1:0"), w.listen("127.0.0.1:0")
	w.publisher, w.stop = w.serve(w.public, w.private)
	return w
}

func (w *edgeWorld) freePort() int {
	w.Helper()
	port, err := testbed.FreePort()
	if err != nil {
		w.Fatal(err)
	}
	return port
}

// secret has a new certificate for a host.
func (w *edgeWorld) secret(name, host string) *schema.Object {
	certificate, key := w.authority.PEM(w.T, host)
	return secretOf(w.T, name, certificate, key)
}

func secretOf(t *testing.T, name, certificate, key string) *schema.Object {
	t.Helper()
	spec, err := json.Marshal(map[string]string{"certificate": certificate, "privateKey": key})
	if err != nil {
		t.Fatal(err)
	}
	return object("Secret", name, string(spec))
}

// start runs the Envoy until the test ends. It returns when the Envoy is ready.
func (w *edgeWorld) start(api bootstrap.API, at net.Listener, secrets ...string) {
	w.Helper()
	options := bootstrap.DefaultBootstrap()
	options.API, options.NodeID, options.Server, options.XDS = api, nodeOfEnvoy, "http://127.0.0.1", []string{at.Addr().String()}
	text, err := bootstrap.Bootstrap(options)
	if err != nil {
		w.Fatal(err)
	}
	b := envoytest.ParseBootstrap(w.T, text)
	b.Admin.Address.GetSocketAddress().PortSpecifier = envoytest.FreePort
	for _, secret := range secrets {
		w.apart[secret] = w.freePort()
		b.StaticResources.Listeners = append(b.StaticResources.Listeners, w.listener(api, secret, w.apart[secret]))
	}
	config := filepath.Join(w.TempDir(), "envoy.json")
	if err := os.WriteFile(config, envoytest.BootstrapText(w.T, b), 0o600); err != nil {
		w.Fatal(err)
	}
	w.envoy = envoytest.Run(w.T, exec.CommandContext(w.Context(), outside.Tool(w.T, "envoy"), "-c", config,
		"--concurrency", "1", "--disable-hot-restart", "-l", "warning"), "/ready")
}

// listener returns a listener whose Secret comes over a stream of its own.
func (w *edgeWorld) listener(api bootstrap.API, secret string, port int) *listenerv3.Listener {
	w.Helper()
	kind := map[bootstrap.API]string{bootstrap.ADS: "GRPC", bootstrap.Delta: "DELTA_GRPC"}[api]
	l := &listenerv3.Listener{}
	if err := protojson.Unmarshal(fmt.Appendf(nil, `{
		"name": %[1]q, "address": {"socket_address": {"address": "127.0.0.1", "port_value": %[2]d}},
		"filter_chains": [{
			"transport_socket": {"name": "tls", "typed_config": {
				"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
				"common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": %[1]q, "sds_config": {
					"resource_api_version": "V3",
					"api_config_source": {"api_type": %[3]q, "transport_api_version": "V3", "grpc_services": [{"envoy_grpc": {"cluster_name": %[4]q}}]}
				}}]}
			}},
			"filters": [{"name": "hcm", "typed_config": {
				"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
				"stat_prefix": "apart",
				"route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "direct_response": {"status": 204}}]}]},
				"http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]
			}}]
		}]
	}`, secret, port, kind, bootstrap.DiscoveryCluster), l); err != nil {
		w.Fatal(err)
	}
	return l
}

// dial connects to a port, and returns the connection and the first host of the certificate
// that it is shown.
func (w *edgeWorld) dial(port int) (*tls.Conn, string, error) {
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // The test looks at the host.
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, "", err
	}
	c := conn.(*tls.Conn)
	return c, c.ConnectionState().PeerCertificates[0].DNSNames[0], nil
}

// ask sends a request over a connection.
func ask(c *tls.Conn) error {
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil && resp.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("got %s", resp.Status)
	}
	return err
}

// until waits until a condition holds. No outcome depends on the time.
func (w *edgeWorld) until(what string, holds func() error) {
	w.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			w.Fatalf("%s: %v", what, err)
		}
	}
}

// untilShown waits until new connections to a port are shown a certificate for a host.
func (w *edgeWorld) untilShown(port int, host string) {
	w.Helper()
	w.until("a certificate for "+host, func() error {
		c, shown, err := w.dial(port)
		if err != nil {
			return err
		}
		defer c.Close()
		if shown != host {
			return fmt.Errorf("shown %s", shown)
		}
		return ask(c)
	})
}

// untilRuns waits until the only proxy runs all that is published.
func (w *edgeWorld) untilRuns() {
	w.Helper()
	w.until("the proxy to run everything", func() error {
		all := w.publisher.Proxies()
		if len(all) != 1 || all[0].Revision != w.source.at() || all[0].Types["secrets"].State != discovery.Synced {
			return fmt.Errorf("at revision %d the proxies are %+v", w.source.at(), all)
		}
		return nil
	})
}

// at returns the revision of the source.
func (s *source) at() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

func eachStreamedAPI(t *testing.T, test func(t *testing.T, api bootstrap.API)) {
	outside.Slow(t)
	for _, api := range []bootstrap.API{bootstrap.Delta, bootstrap.ADS} {
		t.Run(string(api), func(t *testing.T) { test(t, api) })
	}
}

// TestEnvoyTakesSecretsApart rotates a Secret under traffic, restarts the server, and has the
// Envoy refuse a certificate. Everything else of the Envoy comes over ADS, and it counts as
// one proxy.
func TestEnvoyTakesSecretsApart(t *testing.T) {
	eachStreamedAPI(t, func(t *testing.T, api bootstrap.API) {
		w := newEdge(t)
		w.start(api, w.private, "default/a")
		port := w.apart["default/a"]
		w.untilShown(port, "first.example")
		w.untilShown(w.over, "first.example")
		w.untilRuns()

		held, _, err := w.dial(port)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		stop := w.traffic(port)
		w.source.put(w.secret("a", "second.example"))
		w.untilRuns()
		// It has acknowledged it, so it shows nothing else.
		c, shown, err := w.dial(port)
		if err != nil || shown != "second.example" {
			t.Errorf("shown %s, %v", shown, err)
		} else {
			c.Close()
		}
		if n := len(w.publisher.Roster()); n != 1 {
			t.Errorf("%d proxies in the inventory", n)
		}

		// A restart with a change in between.
		w.stop()
		w.source.put(w.secret("a", "third.example"))
		w.public, w.private = w.listen(w.public.Addr().String()), w.listen(w.private.Addr().String())
		w.publisher, w.stop = w.serve(w.public, w.private)
		w.untilShown(port, "third.example")
		w.untilRuns()

		good := w.secret("a", "fifth.example")
		w.source.put(mustStaple(t, "a", "fourth.example"))
		w.until("the refusal", func() error {
			all := w.publisher.Proxies()
			if len(all) != 1 || all[0].Types["secrets"].State != discovery.Rejected || !strings.Contains(all[0].Types["secrets"].Error, "OCSP") {
				return fmt.Errorf("%+v", all)
			}
			return nil
		})
		if of := w.publisher.ObjectStatuses(nil).Of(good.Key().Ref(), w.source.at()); of.Proxies != 1 || of.Running != 0 || len(of.Refusals) == 0 {
			t.Errorf("the refused Secret: %+v", of)
		}
		w.untilShown(port, "third.example")
		w.source.put(good)
		w.untilRuns()
		w.untilShown(port, "fifth.example")
		stop()
		if err := ask(held); err != nil {
			t.Errorf("the connection of before: %v", err)
		}
	})
}

// traffic sends requests over new connections to a port until stop is called. None may fail.
func (w *edgeWorld) traffic(port int) (stop func()) {
	w.Helper()
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			c, _, err := w.dial(port)
			if err == nil {
				err = ask(c)
				c.Close()
			}
			if err != nil {
				w.Errorf("a request failed: %v", err)
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); all.Wait() })
}

// TestEnvoyDoesNotWaitForSecretsApart checks that in delta an Envoy waits neither for a Secret
// that does not exist nor for one that it may not have. It gets the first when that exists. Its
// status says what is withheld, and the listener is closed.
func TestEnvoyDoesNotWaitForSecretsApart(t *testing.T) {
	t.Run("that do not exist", func(t *testing.T) {
		w := newEdge(t)
		w.start(bootstrap.Delta, w.private, "default/b")
		w.wantNoTimeout()
		if c, shown, err := w.dial(w.apart["default/b"]); err == nil {
			c.Close()
			t.Errorf("the listener shows %s", shown)
		}
		w.source.put(w.secret("b", "b.example"))
		w.untilShown(w.apart["default/b"], "b.example")
	})
	t.Run("without the right", func(t *testing.T) {
		w := newEdge(t)
		w.start(bootstrap.Delta, w.public, "default/a")
		w.wantNoTimeout()
		w.until("the status to say what is withheld", func() error {
			all := w.publisher.Proxies()
			if len(all) != 1 || all[0].Types["secrets"].State != discovery.Rejected || !strings.Contains(all[0].Types["secrets"].Error, discovery.ErrWithheld.Error()) {
				return fmt.Errorf("%+v", all)
			}
			return nil
		})
		if c, shown, err := w.dial(w.apart["default/a"]); err == nil {
			c.Close()
			t.Errorf("the listener shows %s", shown)
		}
	})
}

// wantNoTimeout checks that the Envoy waited for no secret until it gave up.
func (w *edgeWorld) wantNoTimeout() {
	w.Helper()
	if waited := w.envoy.AdminText("/stats?usedonly&filter=sds.*init_fetch_timeout"); waited != "" {
		w.Errorf("the Envoy has waited in vain for\n%s", waited)
	}
}

// mustStaple has a certificate that an Envoy does not show without an OCSP response.
func mustStaple(t *testing.T, name, host string) *schema.Object {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		// id-pe-tlsfeature with status_request (RFC 7633).
		ExtraExtensions: []pkix.Extension{{Id: []int{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, 5}}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return secretOf(t, name, block("CERTIFICATE", der), block("PRIVATE KEY", private))
}
