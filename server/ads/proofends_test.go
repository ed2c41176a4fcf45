package ads_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/ads"
	"github.com/pilot-api/pilot-api/server/proxyauth"
)

// TestCertificateEndsOnAnOpenStream checks that a stream ends with the proof of its proxy, and
// its connection after it, because only another connection can show another certificate. A
// stream whose certificate still counts stays.
func TestCertificateEndsOnAnOpenStream(t *testing.T) {
	for _, proved := range []bool{true, false} {
		for name, tc := range map[string]struct {
			change func(trusted *atomic.Pointer[x509.CertPool], ours *x509.Certificate)
			after  time.Duration
			ends   bool
		}{
			"nothing changes":      {nil, 50 * time.Second, false},
			"its time is over":     {nil, time.Minute, true},
			"its authority is out": {func(p *atomic.Pointer[x509.CertPool], _ *x509.Certificate) { p.Store(x509.NewCertPool()) }, 0, true},
			"no authority is left": {func(p *atomic.Pointer[x509.CertPool], _ *x509.Certificate) { p.Store(nil) }, 0, true},
			"another one joins": {func(p *atomic.Pointer[x509.CertPool], ours *x509.Certificate) {
				both := x509.NewCertPool()
				both.AddCert(ours)
				p.Store(both)
			}, 0, false},
		} {
			t.Run(fmt.Sprintf("%s, proofs asked for: %v", name, proved), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					dir := t.TempDir()
					a := selfsigned.NewAuthority(t, dir)
					pool := x509.NewCertPool()
					pool.AddCert(a.Certificate)
					var trusted atomic.Pointer[x509.CertPool]
					trusted.Store(pool)
					certificates, err := authn.NewCertificates(authn.CertificateOptions{Authorities: trusted.Load})
					if err != nil {
						t.Fatal(err)
					}
					opts := ads.Options{Certificates: certificates.Verify, TLS: &tls.Config{
						Certificates: shown(t, a, "replica.example"), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
					}}
					if proved {
						opts.Proxies = proxyauth.New(proxyauth.Options{Certificates: certificates, TrustDomain: "cluster.local", Authorizer: authz.Open{}})
					}
					s := serveAs(t, opts, newSource(service("web.example", 80, 1, "v1")))
					a.IssueFor(t, time.Minute, "client.example", "spiffe://cluster.local/ns/default/sa/web")
					pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.example.crt"), filepath.Join(dir, "client.example.key"))
					if err != nil {
						t.Fatal(err)
					}
					s.speaks = credentials.NewTLS(&tls.Config{ServerName: "replica.example", RootCAs: pool, Certificates: []tls.Certificate{pair}})
					c := s.connectAs(delta, &corev3.Node{Id: nodeA}, nil)
					c.subscribe(cds)
					secrets := s.connectSecrets(delta, &corev3.Node{Id: nodeA})
					secrets.subscribe(sds, "default/none")
					synctest.Wait()
					c.one()
					secrets.one()
					if tc.change != nil {
						tc.change(&trusted, a.Certificate)
					}
					time.Sleep(tc.after + 9*time.Second)
					synctest.Wait()
					for _, c := range []*client{c, secrets} {
						c.mu.Lock()
						over := c.over
						c.mu.Unlock()
						if over != tc.ends {
							t.Fatalf("the stream has ended: %v, want %v", over, tc.ends)
						}
						if tc.ends && (c.ended() != codes.Unauthenticated || c.conn.GetState() == connectivity.Ready) {
							t.Errorf("the stream ended with %v, and the connection is %v", c.err, c.conn.GetState())
						}
					}
				})
			})
		}
	}
}
