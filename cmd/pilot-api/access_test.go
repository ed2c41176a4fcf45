package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/security/identity"
)

const adasToken = "0123456789abcdef-ada"

// secured is a server that asks for proofs.
type secured struct {
	api, polls string
	dir        string
	authority  *selfsigned.Authority
}

// startSecured starts the whole program with TLS, users and an address for polls.
func startSecured(t *testing.T, flags ...string) *secured {
	t.Helper()
	dir := t.TempDir()
	s := &secured{dir: dir, authority: selfsigned.NewAuthority(t, dir)}
	s.authority.Issue(t, "127.0.0.1")
	s.authority.IssueUser(t, time.Hour, "bob", identity.Masters)
	if err := os.WriteFile(s.at("tokens"), []byte(adasToken+`,ada,1,"`+identity.Masters+`"`), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.start(t, "data", flags...)
}

// start starts a server with the certificates and users of s, and with its data in a folder.
func (s *secured) start(t *testing.T, data string, flags ...string) *secured {
	t.Helper()
	s = &secured{api: freeAddress(t), polls: freeAddress(t), dir: s.dir, authority: s.authority}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, append([]string{
			"--listen", s.api, "--discovery-listen", s.polls, "--grpc-listen", "127.0.0.1:0", "--data-dir", s.at(data), "--log-level", "error",
			"--tls-cert", s.at("127.0.0.1.crt"), "--tls-key", s.at("127.0.0.1.key"), "--client-ca", s.at("authority.crt"), "--token-file", s.at("tokens"),
		}, flags...), io.Discard, os.Stderr)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-done; code != exitDone {
			t.Errorf("exit code %d", code)
		}
	})
	for deadline := time.Now().Add(time.Minute); s.get(t, s.api, "/readyz", "", "").StatusCode != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not ready after a minute")
		}
	}
	return s
}

func (s *secured) at(name string) string { return filepath.Join(s.dir, name) }

// client returns a client that trusts the server and shows the certificate of a user, if any.
func (s *secured) client(t *testing.T, user string) *http.Client {
	t.Helper()
	settings := &tls.Config{RootCAs: x509.NewCertPool()}
	settings.RootCAs.AddCert(s.authority.Certificate)
	if user != "" {
		pair, err := tls.LoadX509KeyPair(s.at(user+".crt"), s.at(user+".key"))
		if err != nil {
			t.Fatal(err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: settings}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// answered is an answer with its body. The status is 0 if there was none.
type answered struct {
	*http.Response
	text string
}

func (s *secured) get(t *testing.T, address, path, token, user string) answered {
	t.Helper()
	return s.send(t, s.client(t, user), http.MethodGet, address, path, "", token)
}

func (s *secured) send(t *testing.T, c *http.Client, method, address, path, body, token string) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Remote-User", "somebody-else")
	resp, err := c.Do(r)
	if err != nil {
		return answered{&http.Response{}, err.Error()}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{resp, string(text)}
}

const rules = "/apis/config.istio.io/v1alpha2/namespaces/default/routerules"

// TestUsersProveThemselves checks who is let in at each address, and that history has the
// identity that was proved and not the one that a header claims.
func TestUsersProveThemselves(t *testing.T) {
	outside.Slow(t)
	s := startSecured(t)
	for _, tc := range []struct {
		name, address, path, token, user string
		want                             int
	}{
		{"no proof", s.api, rules, "", "", 401},
		{"metrics without a proof", s.api, "/metrics", "", "", 401},
		{"health without a proof", s.api, "/healthz", "", "", 200},
		{"token", s.api, rules, adasToken, "", 200},
		{"wrong token", s.api, rules, adasToken + "x", "", 401},
		{"certificate", s.api, rules, "", "bob", 200},
		{"polls at the address of the API", s.api, "/v1/registration", adasToken, "", 404},
		{"polls", s.polls, "/v1/registration", "", "", 200},
		{"the API at the address of polls", s.polls, rules, adasToken, "", 404},
		{"health at the address of polls", s.polls, "/readyz", "", "", 200},
	} {
		a := s.get(t, tc.address, tc.path, tc.token, tc.user)
		if a.StatusCode != tc.want {
			t.Errorf("%s: %d %s", tc.name, a.StatusCode, a.text)
		}
		if tc.want == 401 && !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s: no challenge", tc.name)
		}
	}
	rule := `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"r"},"spec":{"destination":{"name":"reviews"},"route":[{"weight":100}]}}`
	if a := s.send(t, s.client(t, "bob"), http.MethodPost, s.api, rules, rule, ""); a.StatusCode != http.StatusCreated {
		t.Fatal(a.text)
	}
	if a := s.get(t, s.api, rules+"/r/history", adasToken, ""); !strings.Contains(a.text, `"user":"bob"`) {
		t.Errorf("history: %s", a.text)
	}
	stranger := selfsigned.NewAuthority(t, t.TempDir())
	stranger.IssueUser(t, time.Hour, "eve", identity.Masters)
	other := &secured{dir: s.dir, authority: s.authority}
	certificate, key := stranger.PEM(t, "eve.example")
	for name, text := range map[string]string{"eve.crt": certificate, "eve.key": key} {
		if err := os.WriteFile(other.at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if a := s.get(t, s.api, rules, "", "eve"); a.StatusCode == http.StatusOK {
		t.Error("a certificate of another authority is let in")
	}
}

// TestPlainTextIsRefused checks that no answer comes without TLS.
func TestPlainTextIsRefused(t *testing.T) {
	outside.Slow(t)
	s := startSecured(t)
	resp, err := http.Get("http://" + s.api + rules)
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%d over plain text", resp.StatusCode)
		}
	}
}

// TestNewCertificatesWithoutABreak replaces the server's certificate and the authority of users
// while requests run on an open connection and on new ones. No request fails.
func TestNewCertificatesWithoutABreak(t *testing.T) {
	outside.Slow(t)
	s := startSecured(t)
	open := s.client(t, "")
	serial := func() string {
		conn, err := tls.Dial("tcp", s.api, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	s.authority.Issue(t, "127.0.0.1")
	for deadline := time.Now().Add(20 * time.Second); serial() == before; {
		if time.Now().After(deadline) {
			t.Fatal("the old certificate is still shown")
		}
		for _, c := range []*http.Client{open, s.client(t, "")} {
			if a := s.send(t, c, http.MethodGet, s.api, rules, "", adasToken); a.StatusCode != http.StatusOK {
				t.Fatalf("while the certificate changed: %d %s", a.StatusCode, a.text)
			}
		}
	}
	if a := s.send(t, open, http.MethodGet, s.api, rules, "", adasToken); a.StatusCode != http.StatusOK {
		t.Errorf("on the connection of before: %d %s", a.StatusCode, a.text)
	}
}

// TestAddressesBeyondLoopback checks which flags let a server listen on the network.
func TestAddressesBeyondLoopback(t *testing.T) {
	const users = "--tls-cert c --tls-key k --token-file t --grpc-listen= "
	for flags, want := range map[string]string{
		"--listen :0": "have users prove themselves (--tls-cert",
		"--listen :0 --tls-cert c --tls-key k --grpc-listen=":                  "have users prove themselves",
		"--listen :0 --token-file t --grpc-listen=":                            "have users prove themselves",
		"--listen :0 " + users:                                                 "give polls an address of their own (--discovery-listen)",
		"--listen :0 --discovery-listen :0 " + users:                           "--discovery-listen :0 can be reached",
		"--listen :0 --discovery-listen 127.0.0.1:0 --anonymous read " + users: "have users prove themselves",
		"--listen :0 --discovery-listen 127.0.0.1:0 " + users:                  "",
		"--tls-cert c":      "--tls-cert and --tls-key go together",
		"--client-ca c":     "--client-ca needs --tls-cert",
		"--client-crl c":    "--client-crl needs --client-ca",
		"--oidc-issuer x":   "--oidc-issuer and --oidc-client-id go together",
		"--oidc-ca x":       "need --oidc-issuer",
		"--account-keys k":  "--account-keys needs proofs of users",
		"--anonymous none":  "keeps everybody out",
		"--anonymous maybe": "must be none, read or admin",
		"--ca self --grpc-listen=": "needs --proxy-auth token,mtls: a certificate has the name that its owner proves\n" +
			"--proxy-auth needs roles: ask users for proofs (--client-ca, --token-file, --oidc-issuer)\n" +
			"--proxy-auth needs --tls-cert and --tls-key, or --grpc-tls-cert and --grpc-tls-key: a proof is shown over TLS only\n" +
			"--ca self needs --grpc-listen",
		"--ca self --proxy-auth mtls --ca-ttl 1s": "needs --grpc-tls-cert and --grpc-tls-key, or --tls-cert and --tls-key: a proxy shows its certificate over TLS only\nusage: --ca-ttl 1s",
		"--ca selfish --ca-root r":                "must be none, self or files\n--ca-cert, --ca-key and --ca-root need --ca files",
	} {
		var o options
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.register(set)
		err := set.Parse(strings.Fields(flags))
		if err == nil {
			err = o.validate()
		}
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", flags, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}

// TestReplicasProveThemselves checks that replicas that ask users for proofs prove themselves to
// each other: each answers with the proxies of the other, and what they ask for is closed to
// users without a right.
func TestReplicasProveThemselves(t *testing.T) {
	outside.Slow(t)
	etcd, err := testbed.StartEtcd(t.Context(), t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	dir := t.TempDir()
	s := &secured{dir: dir, authority: selfsigned.NewAuthority(t, dir)}
	s.authority.Issue(t, "127.0.0.1")
	s.authority.IssueUser(t, time.Hour, "bob", identity.Masters)
	s.authority.IssueUser(t, time.Hour, "eve")
	if err := os.WriteFile(s.at("tokens"), []byte(adasToken+`,ada,1`), 0o600); err != nil {
		t.Fatal(err)
	}
	streams := freeAddress(t)
	flags := []string{"--etcd-endpoints", etcd.Members[0].URL(), "--peer-ca", s.at("authority.crt")}
	first := s.start(t, "first", append(flags, "--grpc-listen", streams)...)
	second := s.start(t, "second", flags...)
	held := make(chan struct{})
	ended := make(chan struct{})
	t.Cleanup(func() { close(held); <-ended })
	go func() {
		defer close(ended)
		first.hold(t, streams, held)
	}()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		a := second.get(t, second.api, "/apis/registry.istio.io/v1/proxies", "", "bob")
		if strings.Contains(a.text, webNode) && a.Header.Get("Warning") == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the second replica does not know the proxy of the first: %s %q", a.text, a.Header.Get("Warning"))
		}
	}
	for user, want := range map[string]int{"": 401, "eve": 403} {
		if a := second.get(t, second.api, "/apis/registry.istio.io/v1/standings?local=true", "", user); a.StatusCode != want {
			t.Errorf("standings for %q: %d %s", user, a.StatusCode, a.text)
		}
	}
}

// TestKubectlProvesItself uses an unmodified kubectl with a certificate and with a token, while
// the server's certificate is replaced. No request fails.
func TestKubectlProvesItself(t *testing.T) {
	outside.Slow(t)
	kubectl := outside.Tool(t, "kubectl")
	s := startSecured(t)
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), kubectl, append([]string{"-s", "https://" + s.api, "--certificate-authority", s.at("authority.crt")}, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	byCertificate := []string{"--client-certificate", s.at("bob.crt"), "--client-key", s.at("bob.key")}
	byToken := []string{"--token", adasToken}
	for round := range 4 {
		for user, proof := range map[string][]string{"bob": byCertificate, "ada": byToken} {
			if out := run(append(proof, "auth", "whoami")...); !strings.Contains(out, user) || !strings.Contains(out, identity.Masters) {
				t.Errorf("round %d, %s: %s", round, user, out)
			}
		}
		s.authority.Issue(t, "127.0.0.1")
		s.authority.IssueUser(t, time.Hour, "bob", identity.Masters)
		time.Sleep(600 * time.Millisecond) // Some rounds come before the server has looked, some after.
	}
}
