package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1alpha1"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/security/authn"
)

const webID = "spiffe://cluster.local/ns/shop/sa/web"

// workload has a key, and asks for certificates as Istio's agent does.
type workload struct {
	server *secured
	xds    string
	key    *ecdsa.PrivateKey
	// shown is the certificate that it shows; nil for none.
	shown *tls.Certificate
	token string

	account string
	dir     string           // of its Envoy
	envoy   *envoytest.Envoy // nil for none
}

func newWorkload(t *testing.T, s *secured, xds string) *workload {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &workload{server: s, xds: xds, key: key}
}

// ask sends a request for a name; "" asks for none.
func (w *workload) ask(t *testing.T, name string, change func(*security.IstioCertificateRequest)) (*security.IstioCertificateResponse, error) {
	t.Helper()
	template := &x509.CertificateRequest{}
	if name != "" {
		u, err := url.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = []*url.URL{u}
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, template, w.key)
	if err != nil {
		t.Fatal(err)
	}
	r := &security.IstioCertificateRequest{Csr: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}))}
	if change != nil {
		change(r)
	}
	settings := &tls.Config{RootCAs: x509.NewCertPool()}
	settings.RootCAs.AddCert(w.server.authority.Certificate)
	if w.shown != nil {
		settings.Certificates = []tls.Certificate{*w.shown}
	}
	conn, err := grpc.NewClient(w.xds, grpc.WithTransportCredentials(credentials.NewTLS(settings)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if w.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+w.token)
	}
	return security.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, r)
}

// take asks for a certificate and shows it from now on.
func (w *workload) take(t *testing.T) *x509.Certificate {
	t.Helper()
	answer, err := w.ask(t, webID, nil)
	if err != nil {
		t.Fatal(err)
	}
	chain := answer.GetCertChain()
	w.shown = &tls.Certificate{PrivateKey: w.key}
	for _, text := range chain[:len(chain)-1] {
		block, _ := pem.Decode([]byte(text))
		w.shown.Certificate = append(w.shown.Certificate, block.Bytes)
	}
	leaf, err := x509.ParseCertificate(w.shown.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(chain[len(chain)-1]))
	between := x509.NewCertPool()
	for _, text := range chain[1 : len(chain)-1] {
		between.AppendCertsFromPEM([]byte(text))
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
		t.Fatal(err)
	}
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != webID {
		t.Fatalf("the certificate is for %v", leaf.URIs)
	}
	return leaf
}

// TestWorkloadsGetCertificates: a workload gets its first certificate by a token, the next one
// by the certificate, and its stream by either. It gets none for another name, and none after
// its account is gone. A restarted server goes on with the same authority.
func TestWorkloadsGetCertificates(t *testing.T) {
	outside.Slow(t)
	streams := freeAddress(t)
	log := filepath.Join(t.TempDir(), "audit.log")
	flags := []string{"--proxy-auth", "token,mtls", "--ca", "self", "--grpc-listen", streams, "--audit-log", log}
	s := startSecured(t, flags...)
	s.account(t, "web")
	w := newWorkload(t, s, streams)
	refused := func(name string, want codes.Code, text string, change func(*security.IstioCertificateRequest)) {
		t.Helper()
		if _, err := w.ask(t, name, change); status.Code(err) != want || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %v %q", name, err, want, text)
		}
	}
	refused(webID, codes.Unauthenticated, "does not prove", nil)
	w.token = s.token(t, "web", authn.AudienceAPI)
	refused(webID, codes.Unauthenticated, "for another audience: want pilot-api-xds or istio-ca", nil)
	w.token = s.token(t, "web", authn.AudienceIstioCA)
	refused("spiffe://cluster.local/ns/bank/sa/vault", codes.InvalidArgument, "has proved to be "+webID, nil)
	refused(webID, codes.InvalidArgument, "validity_duration", func(r *security.IstioCertificateRequest) { r.ValidityDuration = -1 })
	refused(webID, codes.InvalidArgument, "may last at most 2160h", func(r *security.IstioCertificateRequest) { r.ValidityDuration = 1 << 30 })
	refused(webID, codes.InvalidArgument, "ImpersonatedIdentity", func(r *security.IstioCertificateRequest) {
		r.Metadata, _ = structpb.NewStruct(map[string]any{"ImpersonatedIdentity": "spiffe://cluster.local/ns/bank/sa/vault"})
	})
	refused("", codes.Internal, "may have", func(r *security.IstioCertificateRequest) { r.Csr = strings.Repeat("x", 1<<20) })

	first := w.take(t)
	w.token = ""
	second := w.take(t)
	if first.SerialNumber.Cmp(second.SerialNumber) == 0 {
		t.Error("two certificates have one serial number")
	}
	refused("spiffe://cluster.local/ns/bank/sa/vault", codes.InvalidArgument, "has proved to be "+webID, nil)
	if code, err := s.hello(t, streams, "", w.shown, nodeOf(webNode, nil)); code != codes.OK {
		t.Errorf("a stream by the certificate: %v %s", code, err)
	}
	if code, err := s.hello(t, streams, "", w.shown, nodeOf(bankNode, nil)); code != codes.PermissionDenied {
		t.Errorf("a stream of another namespace: %v %s", code, err)
	}
	var text []byte
	for _, one := range []*x509.Certificate{first, second} {
		for deadline := time.Now().Add(time.Minute); !bytes.Contains(text, []byte(one.SerialNumber.Text(16))); time.Sleep(10 * time.Millisecond) {
			var err error
			if text, err = os.ReadFile(log); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("the audit log has no certificate %x", one.SerialNumber)
			}
		}
	}
	for _, secret := range []string{"PRIVATE KEY", "CERTIFICATE REQUEST"} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the audit log has a %s", secret)
		}
	}

	revoked := fmt.Sprintf(`{"serial":"%x"}`, second.SerialNumber)
	if a := s.send(t, s.client(t, "bob"), http.MethodPost, s.api, "/apis/registry.istio.io/v1/authority/revocations", revoked, ""); a.StatusCode != http.StatusOK {
		t.Fatal(a.text)
	}
	refused(webID, codes.Unauthenticated, "it was revoked", nil)
	if code, err := s.hello(t, streams, "", w.shown, nodeOf(webNode, nil)); code != codes.Unauthenticated {
		t.Errorf("a stream by a revoked certificate: %v %s", code, err)
	}
	w.shown, w.token = nil, s.token(t, "web", authn.AudienceXDS)
	w.take(t)
	w.token = ""

	if a := s.send(t, s.client(t, "bob"), http.MethodDelete, s.api, "/api/v1/namespaces/shop/serviceaccounts/web", "", ""); a.StatusCode != http.StatusOK {
		t.Fatal(a.text)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := w.ask(t, webID, nil)
		if status.Code(err) == codes.PermissionDenied {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a certificate of an account that is gone is renewed: %v", err)
		}
	}
}

// TestTheAuthorityStays: the authority that a server made is there after a restart, also for
// certificates that it signed before.
func TestTheAuthorityStays(t *testing.T) {
	outside.Slow(t)
	streams := freeAddress(t)
	var w *workload
	s := startSecured(t)
	flags := []string{"--proxy-auth", "mtls", "--ca", "self", "--grpc-listen", streams}
	t.Run("first", func(t *testing.T) {
		one := s.start(t, "kept", flags...)
		one.account(t, "web")
		w = newWorkload(t, one, streams)
		w.token = one.token(t, "web", authn.AudienceXDS)
		w.take(t)
	})
	two := s.start(t, "kept", flags...)
	if code, err := two.hello(t, streams, "", w.shown, nodeOf(webNode, nil)); code != codes.OK {
		t.Errorf("%v %s", code, err)
	}
	w.token = ""
	w.take(t)
}

// TestALostStoreKeyIsAProblem loses the key that encrypts the authority: the server makes no other
// one, signs nothing, says so where an operator looks, and goes on with the copy.
func TestALostStoreKeyIsAProblem(t *testing.T) {
	outside.Slow(t)
	streams := freeAddress(t)
	s := startSecured(t)
	flags := []string{"--proxy-auth", "mtls", "--ca", "self", "--grpc-listen", streams}
	var w *workload
	t.Run("first", func(t *testing.T) {
		one := s.start(t, "lost", flags...)
		one.account(t, "web")
		w = newWorkload(t, one, streams)
		w.token = one.token(t, "web", authn.AudienceXDS)
		w.take(t)
		w.token = ""
	})
	file := filepath.Join(s.at("lost"), "ca-store.key")
	if err := os.Rename(file, s.at("copy.key")); err != nil {
		t.Fatal(err)
	}
	t.Run("lost", func(t *testing.T) {
		two := s.start(t, "lost", flags...)
		if _, err := w.ask(t, webID, nil); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "ca-store.key is missing: put its copy back") {
			t.Errorf("a certificate without the key: %v", err)
		}
		if code, err := two.hello(t, streams, "", w.shown, nodeOf(webNode, nil)); code != codes.OK {
			t.Errorf("a stream: %v %s", code, err)
		}
		for _, path := range []string{"/debug/problems", "/apis/registry.istio.io/v1/authority"} {
			if a := two.get(t, two.api, path, "", "bob"); !strings.Contains(a.text, "ca-store.key is missing") {
				t.Errorf("%s: %s", path, a.text)
			}
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("another key was made: %v", err)
		}
	})
	if err := os.Rename(s.at("copy.key"), file); err != nil {
		t.Fatal(err)
	}
	s.start(t, "lost", flags...)
	w.take(t)
}

// TestAnOperatorsAuthority: certificates are signed by an authority in files, and by the next
// one when the files change.
func TestAnOperatorsAuthority(t *testing.T) {
	outside.Slow(t)
	streams, dir := freeAddress(t), t.TempDir()
	ours := selfsigned.NewAuthority(t, dir)
	ours.IssueAuthority(t, "issuer")
	at := func(name string) string { return filepath.Join(dir, name) }
	s := startSecured(t, "--proxy-auth", "mtls", "--grpc-listen", streams,
		"--ca", "files", "--ca-cert", at("issuer.crt"), "--ca-key", at("issuer.key"), "--ca-root", at("authority.crt"))
	s.account(t, "web")
	w := newWorkload(t, s, streams)
	w.token = s.token(t, "web", authn.AudienceXDS)
	first := w.take(t)
	if len(w.shown.Certificate) != 2 {
		t.Errorf("a chain of %d certificates, want the leaf and its issuer", len(w.shown.Certificate))
	}
	const path = "/apis/registry.istio.io/v1/authority"
	if a := s.get(t, s.api, path, "", "bob"); a.StatusCode != http.StatusOK || !strings.Contains(a.text, `"signs":true`) || strings.Contains(a.text, `"next"`) {
		t.Errorf("the authority: %s", a.text)
	}
	if a := s.send(t, s.client(t, "bob"), http.MethodPost, s.api, path+"/rotation", `{"step":"add"}`, ""); a.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(a.text, "--ca-root") {
		t.Errorf("a rotation by the server: %d %s", a.StatusCode, a.text)
	}
	ours.IssueAuthority(t, "issuer")
	for deadline := time.Now().Add(time.Minute); bytes.Equal(w.take(t).AuthorityKeyId, first.AuthorityKeyId); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the old issuer still signs")
		}
	}
	if code, err := s.hello(t, streams, "", w.shown, nodeOf(webNode, nil)); code != codes.OK {
		t.Errorf("%v %s", code, err)
	}
}
