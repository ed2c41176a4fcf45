package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	security "istio.io/api/security/v1alpha1"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/security/authn"
)

// pairOfEnvoys are two Envoys that speak mutual TLS with certificates of the server's
// authority: a gateway, web, calls the sidecar of api, which is STRICT.
type pairOfEnvoys struct {
	*secured
	streams string
	callAt  string // the address at which the Envoy of web takes requests
	web     *workload
	api     *workload
	dir     string
	bin     string // the folder of istioctl
}

// The mesh of the two workloads.
const (
	pairSettings = `
proxyListenPort: %s
proxyHttpPort: 0
workloadCertificates: {sdsFile: /proc/self/cwd/default.yaml}
`
	pairObjects = `
{"kind":"ServiceEntry","apiVersion":"networking.istio.io/v1","metadata":{"name":"api"},"spec":{
 "hosts":["api.example"],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"name":"http","protocol":"HTTP","targetPort":%[1]s}],
 "endpoints":[{"address":"127.0.0.1","serviceAccount":"api","labels":{"app":"api","security.istio.io/tlsMode":"istio"}}]}}
---
{"kind":"Sidecar","apiVersion":"networking.istio.io/v1","metadata":{"name":"api"},"spec":{"workloadSelector":{"labels":{"app":"api"}},
 "ingress":[{"port":{"number":%[1]s,"protocol":"HTTP","name":"http"},"bind":"127.0.0.1","captureMode":"NONE","defaultEndpoint":"127.0.0.1:%[2]d"}],
 "egress":[{"hosts":["~/*"]}]}}
---
{"kind":"Gateway","apiVersion":"networking.istio.io/v1","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},
 "servers":[{"port":{"number":%[3]s,"protocol":"HTTP","name":"http"},"bind":"127.0.0.1","hosts":["api.example"]}]}}
---
{"kind":"VirtualService","apiVersion":"networking.istio.io/v1","metadata":{"name":"web"},"spec":{"hosts":["api.example"],"gateways":["web"],
 "http":[{"route":[{"destination":{"host":"api.example"}}]}]}}
---
{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"web"},"subjects":[{"kind":"ServiceAccount","namespace":"shop","name":"web"}],
 "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"proxy"}}
---
{"kind":"PeerAuthentication","apiVersion":"security.istio.io/v1","metadata":{"name":"default"},"spec":{"mtls":{"mode":"STRICT"}}}
`
	callerNode = "router~127.0.0.2~web-1.shop~shop.svc.cluster.local"
	calleeNode = "sidecar~127.0.0.1~api-1.shop~shop.svc.cluster.local"
)

// startPair starts a server with an authority, and the two Envoys with their first
// certificates. They run on one machine, so the path of their sdsFile leads to the folder in which
// each was started.
func startPair(t *testing.T, api envoy.API, flags ...string) *pairOfEnvoys {
	t.Helper()
	p := &pairOfEnvoys{streams: freeAddress(t), callAt: freeAddress(t), dir: t.TempDir()}
	settings := filepath.Join(p.dir, "mesh.yaml")
	if err := os.WriteFile(settings, fmt.Appendf(nil, pairSettings, portOf(freeAddress(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	p.secured = startSecured(t, append([]string{"--proxy-auth", "token", "--ca", "self", "--grpc-listen", p.streams, "--mesh-config", settings}, flags...)...)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "api") }))
	t.Cleanup(app.Close)
	for _, text := range strings.Split(fmt.Sprintf(pairObjects, portOf(freeAddress(t)), envoytest.Port(app), portOf(p.callAt)), "---") {
		p.create(t, text)
	}
	p.web, p.api = p.member(t, "web"), p.member(t, "api")
	p.run(t, p.web, callerNode, api)
	p.run(t, p.api, calleeNode, api)
	return p
}

func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// create writes an object of the namespace shop.
func (p *pairOfEnvoys) create(t *testing.T, text string) {
	t.Helper()
	paths := map[string]string{
		"ServiceEntry": "networking.istio.io/v1/namespaces/shop/serviceentries", "Sidecar": "networking.istio.io/v1/namespaces/shop/sidecars",
		"PeerAuthentication": "security.istio.io/v1/namespaces/shop/peerauthentications", "Gateway": "networking.istio.io/v1/namespaces/shop/gateways",
		"VirtualService": "networking.istio.io/v1/namespaces/shop/virtualservices", "RoleBinding": "rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings",
	}
	_, kind, _ := strings.Cut(text, `"kind":"`)
	kind, _, _ = strings.Cut(kind, `"`)
	if a := p.send(t, p.client(t, "bob"), http.MethodPost, p.secured.api, "/apis/"+paths[kind], text, ""); a.StatusCode != http.StatusCreated {
		t.Fatal(a.text)
	}
}

// firstLife is how long the first certificates last.
const firstLife = 30 * time.Second

// member returns a workload with an account and its first certificate.
func (p *pairOfEnvoys) member(t *testing.T, account string) *workload {
	t.Helper()
	p.account(t, account)
	w := newWorkload(t, p.secured, p.streams)
	w.account, w.dir = account, filepath.Join(p.dir, account)
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.renew(t, firstLife)
	return w
}

// renew takes a certificate with a new key for a time, 0 for the default, and gives it to the
// Envoy of the workload.
func (w *workload) renew(t *testing.T, life time.Duration) *x509.Certificate {
	t.Helper()
	var err error
	if w.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	w.token = w.server.token(t, w.account, authn.AudienceIstioCA)
	answer, err := w.ask(t, "", func(r *security.IstioCertificateRequest) { r.ValidityDuration = int64(life / time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(w.key)
	if err != nil {
		t.Fatal(err)
	}
	chain := answer.GetCertChain()
	text, err := envoy.WorkloadSecret(strings.Join(chain[:len(chain)-1], ""), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	if err == nil {
		err = wholefile.WriteText(filepath.Join(w.dir, "default.yaml"), 0o600, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(chain[0]))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// run starts the Envoy of a workload in the folder of the workload.
func (p *pairOfEnvoys) run(t *testing.T, w *workload, node string, api envoy.API) {
	t.Helper()
	token, err := envoy.TokenSecret(p.token(t, w.account, authn.AudienceXDS))
	if err == nil {
		err = wholefile.WriteText(filepath.Join(w.dir, "token.yaml"), 0o600, token)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := envoy.DefaultBootstrap()
	o.NodeID, o.Server, o.API, o.XDS, o.CAFile, o.XDSTokenFile, o.AdminPort = node, "https://"+p.secured.api, api, []string{p.streams}, p.at("authority.crt"), filepath.Join(w.dir, "token.yaml"), 0
	if w == p.web {
		o.Labels = map[string]string{"app": "web"}
	}
	text, err := envoy.Bootstrap(o)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, "envoy.yaml"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), outside.Tool(t, "envoy"), "-c", "envoy.yaml", "--concurrency", "1", "--disable-hot-restart",
		"--use-dynamic-base-id", "--drain-time-s", "2", "--drain-strategy", "immediate", "-l", "critical")
	cmd.Dir = w.dir
	w.envoy = envoytest.Run(t, cmd, "/ready")
}

// shows waits until the Envoy of a workload has a certificate.
func (w *workload) shows(t *testing.T, leaf *x509.Certificate) {
	t.Helper()
	serial := leaf.SerialNumber.Text(16)
	eventually(t, "the Envoy has certificate "+serial, func() error {
		if text := w.envoy.AdminText("/certs"); !strings.Contains(text, serial) {
			return fmt.Errorf("it has %s", text)
		}
		return nil
	})
}

// call sends a request of web to api, and returns what was wrong with the answer.
func (p *pairOfEnvoys) call(c *http.Client) error {
	r, err := http.NewRequest(http.MethodGet, "http://"+p.callAt+"/", nil)
	if err != nil {
		return err
	}
	r.Host = "api.example"
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || string(text) != "api") {
		err = fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	return err
}

// reach waits until calls succeed.
func (p *pairOfEnvoys) reach(t *testing.T) {
	t.Helper()
	eventually(t, "web calls api", func() error { return p.call(http.DefaultClient) })
}

// eachPair runs a test with two Envoys that reach each other, on delta streams and on ADS.
func eachPair(t *testing.T, test func(*testing.T, *pairOfEnvoys)) {
	outside.Slow(t)
	bin := t.TempDir()
	if err := testbed.Build(bin, "istioctl"); err != nil {
		t.Fatal(err)
	}
	for _, api := range []envoy.API{envoy.Delta, envoy.ADS} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			p := startPair(t, api)
			p.bin = bin
			p.reach(t)
			test(t, p)
		})
	}
}

// eventually tries until there is no error.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: after a minute: %v", what, err)
		}
	}
}

// load sends requests from several clients until stop is called, which returns how many there
// were and the failures.
func (p *pairOfEnvoys) load() (stop func() (sent int, failed []error)) {
	ended := make(chan struct{})
	var running sync.WaitGroup
	var mu sync.Mutex
	sent, failed := 0, []error(nil)
	for range 4 {
		running.Go(func() {
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			for {
				err := p.call(c)
				mu.Lock()
				sent++
				if err != nil && len(failed) < 100 {
					failed = append(failed, err)
				}
				mu.Unlock()
				select {
				case <-ended:
					return
				case <-time.After(2 * time.Millisecond):
				}
			}
		})
	}
	return func() (int, []error) {
		close(ended)
		running.Wait()
		return sent, failed
	}
}

// istioctl runs a command as bob, who may do everything.
func (p *pairOfEnvoys) istioctl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(p.bin, "istioctl"), append(args, "--server", "https://"+p.secured.api,
		"--certificate-authority", p.at("authority.crt"), "--client-certificate", p.at("bob.crt"), "--client-key", p.at("bob.key"))...)
	cmd.Env = []string{"HOME=" + p.dir}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must runs a command whose output must have some words.
func (p *pairOfEnvoys) must(t *testing.T, words string, args ...string) {
	t.Helper()
	if out, err := p.istioctl(t, args...); err != nil || !strings.Contains(out, words) {
		t.Fatalf("istioctl %q: %v\n%s\nwant %q", args, err, out, words)
	}
}

// rotationOfThePage returns the commands by which docs/security-mesh.md rotates the root.
func rotationOfThePage(t *testing.T) (steps [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/security-mesh.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Rotate the root\n")
	_, commands, _ := strings.Cut(section, "```text\n")
	commands, _, _ = strings.Cut(commands, "```")
	for line := range strings.Lines(commands) {
		steps = append(steps, strings.Fields(strings.TrimPrefix(line, "istioctl ")))
	}
	if len(steps) != 3 || steps[0][2] != "add" || steps[1][2] != "sign" || steps[2][2] != "drop" {
		t.Fatalf("the page rotates by %q, want add, sign and drop", steps)
	}
	return steps
}

// TestTheRootIsRotatedUnderLoad rotates the root, and renews the certificates of both Envoys
// before and after, while requests go on. None fails. The old root stays until no certificate
// counts that it signed.
func TestTheRootIsRotatedUnderLoad(t *testing.T) {
	eachPair(t, func(t *testing.T, p *pairOfEnvoys) {
		stop := p.load()
		renew := func(life time.Duration) {
			for _, w := range []*workload{p.web, p.api} {
				w.shows(t, w.renew(t, life))
			}
		}
		renew(firstLife)
		steps := rotationOfThePage(t)
		p.must(t, "next: istioctl ca rotate add", "ca", "status")
		p.must(t, "add: done", steps[0]...)
		p.must(t, "2 of 2 proxies have acknowledged these roots", steps[1]...)
		if out, err := p.istioctl(t, "ca", "rotate", "drop"); err == nil || !strings.Contains(out, "signed count until") {
			t.Errorf("the old root is dropped while its certificates count: %v %s", err, out)
		}
		renew(0)
		p.must(t, "next: istioctl ca rotate add", steps[2]...)
		eventually(t, "both proxies have the new root alone", func() error {
			out, err := p.istioctl(t, "ca", "status")
			if err == nil && !strings.Contains(out, "2 of 2 proxies") {
				err = errors.New(out)
			}
			return err
		})
		renew(0)
		if sent, failed := stop(); len(failed) > 0 || sent == 0 {
			t.Errorf("of %d requests failed %v", sent, failed)
		} else {
			t.Logf("%d requests", sent)
		}
	})
}

// TestARevokedCertificate revokes the certificate of the caller: no request succeeds any more, by
// old connections or new ones, until it has another certificate. The other way round, the
// caller refuses the revoked certificate of the callee.
func TestARevokedCertificate(t *testing.T) {
	eachPair(t, func(t *testing.T, p *pairOfEnvoys) {
		if out, err := p.istioctl(t, "ca", "revoke", "no-number"); err == nil || !strings.Contains(out, "hexadecimal") {
			t.Errorf("%v %s", err, out)
		}
		for _, w := range []*workload{p.web, p.api} {
			leaf := w.renew(t, 0)
			w.shows(t, leaf)
			p.reach(t)
			p.must(t, "revoked certificates: ", "ca", "revoke", leaf.SerialNumber.Text(16))
			eventually(t, "calls fail", func() error {
				if p.call(http.DefaultClient) == nil {
					return errors.New("one succeeds")
				}
				return nil
			})
			// Connections that were open may serve until the end of their drain time.
			eventually(t, "no call succeeds", func() error { return p.nothingSucceeds(50) })
			if err := p.nothingSucceeds(200); err != nil {
				t.Error(err)
			}
			w.shows(t, w.renew(t, 0))
			p.reach(t)
		}
		p.must(t, "add: done", "ca", "rotate", "add")
		p.must(t, "sign: done", "ca", "rotate", "sign", "--wait", "1m")
		for _, w := range []*workload{p.web, p.api} {
			w.shows(t, w.renew(t, 0))
		}
		p.reach(t)
	})
}

// nothingSucceeds sends requests, and returns an error if one succeeds.
func (p *pairOfEnvoys) nothingSucceeds(requests int) error {
	for range requests {
		if p.call(http.DefaultClient) == nil {
			return errors.New("a request succeeds")
		}
	}
	return nil
}
