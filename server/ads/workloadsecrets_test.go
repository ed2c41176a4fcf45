package ads_test

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/server/ads"
)

// authorities gives each account a secret with the name ROOTCA, which a test changes.
type authorities struct {
	mu      sync.Mutex
	present map[string]*ir.Secret // by account
	watched map[string][]func()
}

func (a *authorities) Of(namespace, account string) discovery.WorkloadSecrets {
	return authoritiesOf{a, namespace + "/" + account}
}

// set changes the secret of an account.
func (a *authorities) set(account, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.present[account] = &ir.Secret{Name: "ROOTCA", CACertificates: text}
	for _, changed := range a.watched[account] {
		changed()
	}
}

type authoritiesOf struct {
	*authorities
	account string
}

func (a authoritiesOf) Secret(name string) *ir.Secret {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.present[a.account]; s != nil && s.Name == name {
		return s
	}
	return nil
}

func (a authoritiesOf) Watch(changed func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watched[a.account] = append(a.watched[a.account], changed)
	return func() { a.set(a.account+" ended", "") }
}

// TestWorkloadSecrets checks that a proxy gets the secrets of the account that it has proved,
// over ADS and over streams of secrets, and each change of them, and that others get none.
func TestWorkloadSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		shows string // the account in the certificate, "" for plain text
		gets  string
	}{
		"an account": {"web", "of web"}, "another account": {"api", "of api"}, "no account": {}, "an account without secrets": {shows: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, kind variant) {
				all := &authorities{present: map[string]*ir.Secret{}, watched: map[string][]func(){}}
				all.set("default/web", "of web")
				all.set("default/api", "of api")
				front := ads.Options{Secrets: all}
				var speaks credentials.TransportCredentials = insecure.NewCredentials()
				if tc.shows != "" {
					a := selfsigned.NewAuthority(t, t.TempDir())
					pool := x509.NewCertPool()
					pool.AddCert(a.Certificate)
					front.TLS = &tls.Config{Certificates: shown(t, a, "replica.example"), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
					speaks = credentials.NewTLS(&tls.Config{ServerName: "replica.example", RootCAs: pool,
						Certificates: shown(t, a, "client.example", "spiffe://cluster.local/ns/default/sa/"+tc.shows)})
				}
				s := serveAs(t, front, newSource())
				s.speaks = speaks
				for _, c := range []*client{s.connect(kind, nodeA), s.connectSecrets(kind, &corev3.Node{Id: nodeA})} {
					c.subscribe(sds, "ROOTCA")
					c.wantAuthorities(tc.gets)
					if tc.gets == "" {
						continue
					}
					all.set("default/web", tc.gets+", renewed")
					all.set("default/api", tc.gets+", renewed")
					c.wantAuthorities(tc.gets + ", renewed")
					c.end()
					synctest.Wait()
					if all.Of("default", tc.shows+" ended").Secret("ROOTCA") == nil {
						t.Error("the stream has ended, and the secrets are still watched")
					}
					all.set("default/web", "of web")
					all.set("default/api", "of api")
				}
			})
		})
	}
}

// wantAuthorities checks the secret ROOTCA in the responses, "" for none.
func (c *client) wantAuthorities(want string) {
	c.t.Helper()
	got := ""
	for _, r := range c.told() {
		if a := r.resources["ROOTCA"]; a != nil {
			got = decoded[*tlsv3.Secret](c.t, a).GetValidationContext().GetTrustedCa().GetInlineString()
		}
		c.ack(r)
	}
	if got != want {
		c.t.Errorf("told the authorities %q, want %q", got, want)
	}
}
