package discovery_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestALostStreamOfSecretsIsAwaited: a proxy whose stream of secrets broke does not run a new
// certificate until it has taken it over another stream, or a while is over. If the proxy
// ended the stream itself, it needs the secret no more.
func TestALostStreamOfSecretsIsAwaited(t *testing.T) {
	authority := selfsigned.NewAuthority(t, t.TempDir())
	secret := func(host string) *schema.Object {
		certificate, key := authority.PEM(t, host)
		spec, err := json.Marshal(map[string]string{"certificate": certificate, "privateKey": key})
		if err != nil {
			t.Fatal(err)
		}
		return object(t, "Secret", "a", string(spec))
	}
	const node = "router~10.9.0.3~r.default~default.svc.cluster.local"
	for name, tc := range map[string]struct {
		end func(*discovery.Stream)
		// then happens after the change.
		then func(t *testing.T, s *discovery.Publisher)
		runs int
	}{
		"lost":                   {(*discovery.Stream).Lose, func(*testing.T, *discovery.Publisher) {}, 0},
		"lost, and back":         {(*discovery.Stream).Lose, func(t *testing.T, s *discovery.Publisher) { takeSecret(t, s, node) }, 1},
		"lost, and a while over": {(*discovery.Stream).Lose, func(*testing.T, *discovery.Publisher) { time.Sleep(fleet.ReturnTime) }, 1},
		"closed":                 {(*discovery.Stream).Close, func(*testing.T, *discovery.Publisher) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := newObjects(
					object(t, "Gateway", "edge", `{"servers":[{"port":{"number":443,"name":"a","protocol":"HTTPS"},"hosts":["a.example"],"tls":{"mode":"SIMPLE","credentialName":"a"}}]}`),
					object(t, "VirtualService", "web", `{"hosts":["*"],"gateways":["edge"],"http":[{"directResponse":{"status":204}}]}`),
					secret("a.example"))
				s := follow(t, src, discovery.Options{})
				proxy, err := simulated.Connect(s, node)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(proxy.Leave)
				synctest.Wait()
				st := takeSecret(t, s, node)
				tc.end(st)
				src.replace(2, secret("b.example"))
				time.Sleep(time.Second)
				tc.then(t, s)
				synctest.Wait()
				of := s.ObjectStatuses(nil).Of(src.all[2].Key().Ref(), src.revision)
				if of.Proxies != 1 || of.Running != tc.runs {
					t.Errorf("%d of %d run the Secret, want %d", of.Running, of.Proxies, tc.runs)
				}
			})
		})
	}
}

// takeSecret begins a stream of secrets that acknowledges the Secret a.
func takeSecret(t *testing.T, s *discovery.Publisher, node string) *discovery.Stream {
	t.Helper()
	st, err := s.ConnectSecrets(mesh.Node{ID: node}, discovery.Delta)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	st.SendKeys(discovery.AllKeys())
	if err := st.Receive(discovery.Request{TypeURL: discovery.SecretType, Subscribe: []string{"default/a"}}); err != nil {
		t.Fatal(err)
	}
	r, err := st.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Receive(discovery.Request{TypeURL: r.TypeURL, Nonce: r.Nonce}); err != nil {
		t.Fatal(err)
	}
	return st
}
