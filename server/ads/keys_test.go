package ads_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/server/ads"
)

// keysOver defines over which connections a proxy receives private keys.
var keysOver = map[string]struct {
	tls, verify, private bool
	sent                 bool
}{
	"plain text":                     {},
	"TLS without client certificate": {tls: true},
	"TLS with client certificate":    {tls: true, verify: true, sent: true},
	"private listener":               {private: true, sent: true},
	"private listener beside TLS":    {tls: true, private: true, sent: true},
	"private listener beside mutual": {tls: true, verify: true, private: true, sent: true},
}

// TestPrivateKeysNeedProof checks that a proxy receives private keys, over ADS and over a
// stream of secrets, only over a connection that proves that it may have them. Otherwise it has the rest, and its
// status, the objects behind the key and the problems say what is missing.
func TestPrivateKeysNeedProof(t *testing.T) {
	for name, over := range keysOver {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				l := lates(t)["secrets"]
				a := selfsigned.NewAuthority(t, t.TempDir())
				authorities := x509.NewCertPool()
				authorities.AddCert(a.Certificate)
				front := ads.Options{}
				if over.tls {
					front.TLS = &tls.Config{Certificates: shown(t, a, "replica.example")}
				}
				if over.verify {
					front.TLS.ClientAuth, front.TLS.ClientCAs = tls.RequireAndVerifyClientCert, authorities
				}
				s := serveAs(t, front, newSource(l.objects...))
				s.privately, s.speaks = over.private, insecure.NewCredentials()
				if over.tls && !over.private {
					// It shows a certificate even if none is requested.
					s.speaks = credentials.NewTLS(&tls.Config{ServerName: "replica.example", RootCAs: authorities, Certificates: shown(t, a, "client.example")})
				}
				c := s.connect(kind, l.node)
				c.subscribe(lds)
				c.ack(c.one())
				apart := s.connectSecrets(kind, &corev3.Node{Id: l.node})
				for _, c := range []*client{apart, c} {
					c.subscribe(sds, l.first)
					if over.sent {
						if r := c.one(); !strings.Contains(string(r.resources[l.first].GetValue()), "BEGIN PRIVATE KEY") {
							t.Errorf("sent %v", r)
						}
						continue
					}
					for _, r := range c.told() {
						if len(r.resources) > 0 {
							t.Errorf("sent %v", r)
						}
						c.ack(r)
					}
					synctest.Wait()
					wantState(t, s, "secrets", discovery.Rejected, l.first+": "+discovery.ErrWithheld.Error())
				}
				if over.sent {
					return
				}
				wantState(t, s, "listeners", discovery.Synced, "")
				wantBlame(t, s, "a", "edge")
				problems := s.publisher.Report().Problems.Error()
				if !strings.Contains(problems, "is not sent its secrets: default/a: private keys") {
					t.Errorf("the problems are %s", problems)
				}
			})
		})
	}
}
