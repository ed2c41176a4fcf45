package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// changedServers are the hosts and the TLS settings of servers at one port, and the rest of a
// Gateway. Each server has a Gateway of its own. PORT stands for the number of the port, and
// FILES for the folder of the certificates.
type changedServers map[string]string

const (
	byFile   = "port: {number: PORT, name: tls, protocol: HTTPS}, tls: {mode: SIMPLE, serverCertificate: FILES/edge.crt, privateKey: FILES/edge.key}"
	bySecret = "port: {number: PORT, name: tls, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: edge}"
	mutual   = "port: {number: PORT, name: tls, protocol: HTTPS}, tls: {mode: MUTUAL, credentialName: edge}"
	optional = "port: {number: PORT, name: tls, protocol: HTTPS}, tls: {mode: OPTIONAL_MUTUAL, credentialName: edge}"
	newer    = "port: {number: PORT, name: tls, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: edge, minProtocolVersion: TLSV1_3}"
	passed   = "port: {number: PORT, name: tls, protocol: TLS}, tls: {mode: PASSTHROUGH}"
	plain    = "port: {number: PORT, name: http, protocol: HTTP}"
	redirect = "port: {number: PORT, name: http, protocol: HTTP}, tls: {httpsRedirect: true}"
)

// TestConnectionsOfChangedServers changes servers of a Gateway under load. A connection that
// proved all that the server of its host asks now goes on, and no request of it fails. Every
// other connection is served nothing any more as soon as the proxy counts as synced.
func TestConnectionsOfChangedServers(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	// The keys are hosts of the servers, and the values the rest of them.
	for _, group := range []struct {
		apis    string
		changes []changeOfServers
	}{
		{"delta ads rest", []changeOfServers{
			{what: "certificate from a file to a Secret",
				before: changedServers{"first.example": byFile, "*": byFile}, after: changedServers{"first.example": bySecret, "*": byFile}, goOn: true},
			{what: "SIMPLE to MUTUAL",
				before: changedServers{"first.example": bySecret}, after: changedServers{"first.example": mutual}},
			{what: "server deleted", before: changedServers{"first.example": bySecret}, after: changedServers{}},
		}},
		{"delta", []changeOfServers{
			{what: "server added", before: changedServers{"first.example": bySecret}, after: changedServers{"first.example": bySecret, "other.example": mutual}, goOn: true},
			{what: "server added that differs in versions", before: changedServers{"first.example": bySecret}, after: changedServers{"first.example": bySecret, "other.example": newer}, goOn: true},
			{what: "other server removed", before: changedServers{"first.example": bySecret, "*": byFile}, after: changedServers{"first.example": bySecret}, goOn: true},
			{what: "host added", before: changedServers{"first.example": bySecret}, after: changedServers{"first.example, added.example": bySecret}, goOn: true},
			{what: "other certificate of the other server", before: changedServers{"first.example": byFile, "*.example": byFile}, after: changedServers{"first.example": byFile, "*.example": bySecret}, goOn: true},
			{what: "SIMPLE to MUTUAL beside SIMPLE", before: changedServers{"first.example": bySecret, "*": byFile}, after: changedServers{"first.example": mutual, "*": byFile}},
			{what: "OPTIONAL_MUTUAL to MUTUAL", before: changedServers{"first.example": optional}, after: changedServers{"first.example": mutual}},
			{what: "newer TLS", before: changedServers{"first.example": bySecret}, after: changedServers{"first.example": newer}},
			{what: "SIMPLE to PASSTHROUGH", before: changedServers{"first.example": bySecret}, after: changedServers{"first.example": passed}},
			{what: "TLS to plain text", before: changedServers{"first.example": bySecret}, after: changedServers{"first.example": plain}},
			{what: "plain text to redirect", before: changedServers{"first.example": plain}, after: changedServers{"first.example": redirect}},
			{what: "plain text to TLS", before: changedServers{"first.example": plain}, after: changedServers{"first.example": bySecret}},
			{what: "plain server deleted", before: changedServers{"first.example": plain}, after: changedServers{}},
			{what: "host added to plain text", before: changedServers{"first.example": plain}, after: changedServers{"first.example, added.example": plain}, goOn: true},
		}},
	} {
		for _, api := range strings.Fields(group.apis) {
			t.Run(api, func(t *testing.T) {
				t.Parallel()
				w := openSecrets(t, api)
				w.issue("edge", "first.example")
				files := t.TempDir()
				selfsigned.Write(t, filepath.Join(files, "edge.crt"), filepath.Join(files, "edge.key"))
				for _, c := range group.changes {
					t.Run(c.what, func(t *testing.T) { c.under(t, w, files) })
				}
			})
		}
	}
}

type changeOfServers struct {
	what          string
	before, after changedServers
	goOn          bool
}

func (c changeOfServers) under(t *testing.T, w *withSecrets, files string) {
	w = w.of(t)
	fill := strings.NewReplacer("PORT", strconv.Itoa(w.port), "FILES", files).Replace
	scheme := "https"
	if c.before["first.example"] == plain {
		scheme = "http"
	}
	w.replaceAll(fill(c.before.objects("")))
	load := w.startLoad("first.example", scheme)
	w.replaceAll(fill(c.after.objects("")))
	if c.goOn {
		load.goesOn(t)
	} else {
		load.isServedNothing(t, "after the change")
	}
	w.replaceAll(fill(c.after.objects("{directResponse: {status: 403}}, ")))
	load.isServedNothing(t, "after a rule that denies")
}

// objects returns the Gateways, and a VirtualService with routes before the one that
// answers 204.
func (s changedServers) objects(routes string) string {
	out := fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: hosts}
spec:
  hosts: [first.example]
  gateways: [first]
  http: [%s{directResponse: {status: 204}}]
`, routes)
	for hosts, rest := range s {
		name := "other"
		if strings.HasPrefix(hosts, "first") {
			name = "first"
		}
		out += fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: %s}
spec:
  servers:
  - {hosts: ["%s"], %s}
`, name, strings.ReplaceAll(hosts, ", ", `", "`), rest)
	}
	return out
}

// of returns the same for another test.
func (w *withSecrets) of(t *testing.T) *withSecrets {
	other := *w
	other.t = t
	return &other
}

// replaceAll writes objects, deletes all others of the test, and waits until the proxy counts
// as synced.
func (w *withSecrets) replaceAll(text string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.do("apply", "--owner", "changes", "--prune", "-f", file)
	w.synced()
}

// synced waits until the proxy counts as one that runs all that is written.
func (w *withSecrets) synced() {
	w.t.Helper()
	written, err := w.pilot.writtenRevision(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.wait("the proxy to be synced", func(ctx context.Context) error {
		text, err := w.pilot.Istioctl(ctx, "proxy-status", "-o", "json")
		if err != nil {
			return err
		}
		var all []struct {
			Revision int64
			Types    map[string]struct{ State string }
		}
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
		synced := len(all) == 1 && all[0].Revision >= written
		for _, p := range all {
			for _, of := range p.Types {
				synced = synced && of.State == "SYNCED"
			}
		}
		if !synced {
			return fmt.Errorf("%d is written, and the status is\n%s", written, text)
		}
		return nil
	})
}

// connectionsOfLoad is how many connections send requests at the same time.
const connectionsOfLoad = 8

// serverLoad sends requests for a host over connections that are open from the beginning.
type serverLoad struct {
	conns []*loadedConn
	end   context.CancelFunc
	all   sync.WaitGroup
}

// loadedConn is a connection of a load. It ends as soon as the proxy says so.
type loadedConn struct {
	client *http.Client
	url    string

	mu     sync.Mutex
	asked  int
	ended  bool
	failed error // the first failed request
}

func (w *withSecrets) startLoad(host, scheme string) *serverLoad {
	w.t.Helper()
	ctx, end := context.WithCancel(w.t.Context())
	l := &serverLoad{end: end}
	w.t.Cleanup(l.stop)
	for range connectionsOfLoad {
		c := &loadedConn{url: scheme + "://" + host, client: w.overOneConnection(host)}
		w.wait("a connection for "+host, func(context.Context) error {
			_, err := c.ask(ctx)
			return err
		})
		l.conns = append(l.conns, c)
		l.all.Go(func() { c.load(ctx) })
	}
	return l
}

var errEnded = errors.New("the connection has ended")

// overOneConnection returns a client that never connects again once it has been answered.
func (w *withSecrets) overOneConnection(host string) *http.Client {
	var served atomic.Bool
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{ServerName: host, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
		MaxConnsPerHost: 1,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if served.Load() {
				return nil, errEnded
			}
			return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port)))
		},
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(r)
			if err == nil && resp.StatusCode == http.StatusNoContent {
				served.Store(true)
			}
			return resp, err
		}),
	}
}

type roundTrips func(*http.Request) (*http.Response, error)

func (do roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return do(r) }

// ask sends one request. It fails if the answer is not that of the rule, or if the proxy has
// closed the connection without notice.
func (c *loadedConn) ask(ctx context.Context) (status int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return 0, nil
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, c.url, nil)
	if err != nil {
		return 0, err
	}
	c.asked++
	resp, err := c.client.Do(req)
	switch {
	case err != nil:
	case resp.StatusCode != http.StatusNoContent:
		err = errors.New(resp.Status)
	}
	if resp != nil {
		status, c.ended = resp.StatusCode, resp.Close
		resp.Body.Close()
	}
	if errors.Is(err, errEnded) {
		c.ended = true
	}
	return status, err
}

// load sends requests until its context ends.
func (c *loadedConn) load(ctx context.Context) {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		if _, err := c.ask(ctx); err != nil {
			c.note(err)
		}
	}
}

func (c *loadedConn) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
}

// stop ends the load.
func (l *serverLoad) stop() {
	l.end()
	l.all.Wait()
}

// goesOn checks that no request has failed.
func (l *serverLoad) goesOn(t *testing.T) {
	t.Helper()
	for i, c := range l.conns {
		c.mu.Lock()
		if c.failed != nil {
			t.Errorf("connection %d, after %d requests: %v, ended %v", i, c.asked, c.failed, c.ended)
		}
		c.mu.Unlock()
	}
}

// isServedNothing checks that no connection is answered by the last rule.
func (l *serverLoad) isServedNothing(t *testing.T, when string) {
	t.Helper()
	got := map[int]int{}
	for _, c := range l.conns {
		status, _ := c.ask(t.Context())
		got[status]++
	}
	t.Logf("%s: statuses %v, 0 for a connection that has ended", when, got)
	if got[http.StatusNoContent] > 0 {
		t.Errorf("%s: %d of %d connections are served", when, got[http.StatusNoContent], len(l.conns))
	}
}
