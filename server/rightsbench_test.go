package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// proofs are ways to ask for one object on a warm connection.
type proofs struct {
	url    string
	client *http.Client
	token  string
}

// provedServers returns a server without proofs and, by the way of proof, clients of one that
// has TLS, users and roles.
func provedServers(t testing.TB) map[string]proofs {
	dir := t.TempDir()
	authority := selfsigned.NewAuthority(t, dir)
	authority.Issue(t, "127.0.0.1")
	authority.IssueUser(t, time.Hour, "vic")
	file := filepath.Join(dir, "tokens")
	if err := os.WriteFile(file, []byte("token-of-the-user-vic,vic,1"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	tokens, err := authn.NewTokenFile(file, log)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority.Certificate)
	certificates, err := authn.NewCertificates(authn.CertificateOptions{Authorities: func() *x509.CertPool { return pool }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	mem, roles := memory.New(), &authz.Roles{}
	objects := store.Strict(mem)
	for _, o := range authz.BuiltIns() {
		roles.Put(o)
	}
	for _, text := range []string{bindingOf("ClusterRoleBinding", "", "vics", "ClusterRole", "view", "vic"), ruleOf("shop", "a")} {
		o, list := schema.Decode([]byte(text), schema.Options{})
		if list.Err() != nil {
			t.Fatal(list)
		}
		if roles.Put(o); o.Kind.Kind == "RouteRule" {
			if _, err := objects.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	serve := func(change func(*server.Options), settings *tls.Config) string {
		opts := server.Options{Store: objects, Reads: mem}
		change(&opts)
		ts := httptest.NewUnstartedServer(server.New(opts).Handler())
		if ts.TLS = settings; settings != nil {
			ts.StartTLS()
		} else {
			ts.Start()
		}
		t.Cleanup(ts.Close)
		return ts.URL + rulesIn("shop") + "/a"
	}
	pair := func(name string) tls.Certificate {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	client := func(certificates ...tls.Certificate) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates}}}
	}
	open := serve(func(*server.Options) {}, nil)
	proved := serve(func(o *server.Options) {
		o.Roles, o.Authn = roles, authn.New(authn.Options{Certificates: certificates, Tokens: []authn.TokenVerifier{tokens}})
	}, &tls.Config{Certificates: []tls.Certificate{pair("127.0.0.1")}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool, NextProtos: []string{"http/1.1"}})
	secret := serve(func(*server.Options) {}, &tls.Config{Certificates: []tls.Certificate{pair("127.0.0.1")}, NextProtos: []string{"http/1.1"}})
	return map[string]proofs{
		"open": {open, client(), ""}, "TLS": {secret, client(), ""},
		"token": {proved, client(), "token-of-the-user-vic"}, "certificate": {proved, client(pair("vic")), ""},
	}
}

// ask asks once.
func (p proofs) ask(t testing.TB) {
	req, err := http.NewRequest(http.MethodGet, p.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", resp.StatusCode, text, err)
	}
}

// TestProofsOfTheBenchmark checks that each way of BenchmarkProofs is answered.
func TestProofsOfTheBenchmark(t *testing.T) {
	for _, p := range provedServers(t) {
		p.ask(t)
	}
}

// BenchmarkProofs shows what TLS, a proof and a check of roles add to a GET on a warm
// connection.
func BenchmarkProofs(b *testing.B) {
	for name, p := range provedServers(b) {
		p.ask(b)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.ask(b)
			}
		})
	}
}
