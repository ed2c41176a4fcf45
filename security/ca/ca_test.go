package ca_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/security/ca"
)

var reviews = ca.Account{Namespace: "shop", Name: "reviews"}

const reviewsID = "spiffe://mesh.example/ns/shop/sa/reviews"

// request returns a request in PEM for a key.
func request(t testing.TB, key crypto.Signer, change func(*x509.CertificateRequest)) string {
	t.Helper()
	template := &x509.CertificateRequest{}
	if change != nil {
		change(template)
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}))
}

func onCurve(t testing.TB, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newCA(t testing.TB, opts ca.Options) *ca.CA {
	t.Helper()
	opts.TrustDomain = "mesh.example"
	c, err := ca.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// authority is a certificate with its key, and the certificates that lead to its root.
type authority struct {
	chain []*x509.Certificate
	key   crypto.Signer
}

// newAuthority returns an authority that lasts for life, signed by another one or, if that is
// nil, by itself.
func newAuthority(t testing.TB, life time.Duration, by *authority) *authority {
	t.Helper()
	key := onCurve(t, elliptic.P256())
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: fmt.Sprint("authority ", time.Now().UnixNano())}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	parent, signer, rest := template, key, []*x509.Certificate(nil)
	if by != nil {
		parent, signer, rest = by.chain[0], by.key, by.chain
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{append([]*x509.Certificate{made}, rest...), key}
}

func (a *authority) root() *x509.Certificate { return a.chain[len(a.chain)-1] }

// pair returns the files of an operator. The chain is without its root.
func (a *authority) pair(t testing.TB) credential.Pair {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	chain := a.chain
	if len(chain) > 1 {
		chain = chain[:len(chain)-1]
	}
	return credential.Pair{
		Certificate:    texts(chain...),
		Key:            credential.NewKey(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))),
		CACertificates: texts(a.root()),
	}
}

func texts(list ...*x509.Certificate) string {
	var out strings.Builder
	for _, c := range list {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	return out.String()
}

// trusting returns a CA with the authority of an operator.
func trusting(t testing.TB, a *authority, opts ca.Options) *ca.CA {
	t.Helper()
	c := newCA(t, opts)
	trust, err := ca.FromPair(a.pair(t))
	if err != nil {
		t.Fatal(err)
	}
	c.SetTrust(trust)
	return c
}

// TestSignedCertificates: what is signed verifies as a server and a client, has the one name,
// and is no authority, for all keys and lengths of chains.
func TestSignedCertificates(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]crypto.Signer{"P-256": onCurve(t, elliptic.P256()), "P-384": onCurve(t, elliptic.P384()), "RSA": rsaKey}
	root := newAuthority(t, time.Hour*1000, nil)
	issuers := map[string]*authority{"root": root, "intermediate": newAuthority(t, time.Hour*1000, newAuthority(t, time.Hour*1000, root))}
	for issuer, by := range issuers {
		for kind, key := range keys {
			t.Run(issuer+" "+kind, func(t *testing.T) {
				issued, err := trusting(t, by, ca.Options{}).Sign(t.Context(), request(t, key, nil), reviews, 0)
				if err != nil {
					t.Fatal(err)
				}
				shown := issued.PEM()
				roots, between := x509.NewCertPool(), x509.NewCertPool()
				if !roots.AppendCertsFromPEM([]byte(shown[len(shown)-1])) {
					t.Fatal("no root at the end")
				}
				for _, text := range shown[1 : len(shown)-1] {
					between.AppendCertsFromPEM([]byte(text))
				}
				leaf := issued.Leaf()
				for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
					if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
						t.Error(err)
					}
				}
				if len(leaf.URIs) != 1 || leaf.URIs[0].String() != reviewsID || leaf.IsCA || leaf.Subject.String() != "" || len(leaf.DNSNames) > 0 {
					t.Errorf("names %v %q %v, authority %v", leaf.URIs, leaf.Subject, leaf.DNSNames, leaf.IsCA)
				}
				if life := leaf.NotAfter.Sub(leaf.NotBefore); life < 24*time.Hour+10*time.Minute-time.Second || life > 24*time.Hour+10*time.Minute+time.Second {
					t.Errorf("lasts %v, want a day and the skew of clocks", life)
				}
			})
		}
	}
}

// TestLives: a certificate ends when its owner asks for, and never after its issuers.
func TestLives(t *testing.T) {
	text := request(t, onCurve(t, elliptic.P256()), nil)
	short := newAuthority(t, time.Hour, nil)
	for name, c := range map[string]struct {
		by   *authority
		ask  time.Duration
		want time.Duration
	}{
		"asked for":        {newAuthority(t, 1000*time.Hour, nil), 2 * time.Hour, 2 * time.Hour},
		"the root ends":    {short, 2 * time.Hour, time.Hour},
		"root under chain": {newAuthority(t, 1000*time.Hour, short), 2 * time.Hour, time.Hour},
	} {
		issued, err := trusting(t, c.by, ca.Options{}).Sign(t.Context(), text, reviews, c.ask)
		if err != nil {
			t.Fatal(name, err)
		}
		if left := time.Until(issued.Leaf().NotAfter); left > c.want || left < c.want-time.Minute {
			t.Errorf("%s: ends in %v, want %v", name, left, c.want)
		}
	}
	ended := newAuthority(t, -time.Second, nil)
	c := newCA(t, ca.Options{})
	if trust, err := ca.FromPair(ended.pair(t)); err == nil {
		c.SetTrust(trust)
		t.Error("an authority that has ended was taken")
	}
	if _, err := trusting(t, short, ca.Options{MaxTTL: time.Hour}).Sign(t.Context(), text, reviews, 61*time.Minute); !isRefusal(err, "at most 1h0m0s") {
		t.Error(err)
	}
	if _, err := trusting(t, short, ca.Options{}).Sign(t.Context(), text, reviews, -time.Second); !isRefusal(err, "at most") {
		t.Error(err)
	}
}

func isRefusal(err error, text string) bool {
	var r *ca.Refusal
	return errors.As(err, &r) && strings.Contains(r.Reason, text)
}

// TestRefusedRequests: a request for anything but the one name of a workload is refused in
// words, and nothing is signed.
func TestRefusedRequests(t *testing.T) {
	key := onCurve(t, elliptic.P256())
	uri := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	asking := func(change func(*x509.CertificateRequest)) string { return request(t, key, change) }
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Log(err, "(GODEBUG rsa1024min)")
	}
	long, err := rsa.GenerateKey(rand.Reader, 4160)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, _ := ed25519.GenerateKey(rand.Reader)
	good := asking(nil)
	forged := []byte(good)
	block, _ := pem.Decode(forged)
	block.Bytes[len(block.Bytes)-1] ^= 1
	many := func(r *x509.CertificateRequest) {
		for i := range 10_000 {
			r.DNSNames = append(r.DNSNames, fmt.Sprintf("h%d", i))
		}
	}
	authority, err := asn1.Marshal(struct{ IsCA bool }{true})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ request, want string }{
		"nothing":       {"", "one block CERTIFICATE REQUEST"},
		"no PEM":        {"hello", "one block CERTIFICATE REQUEST"},
		"a certificate": {texts(newAuthority(t, time.Hour, nil).root()), "one block CERTIFICATE REQUEST"},
		"damaged":       {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})), "cannot be read"},
		"two":           {good + good, "something follows"},
		"another's key": {string(pem.EncodeToMemory(block)), "not signed by the key"},
		"foreign name":  {asking(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri("spiffe://mesh.example/ns/bank/sa/vault")} }), "has proved to be " + reviewsID},
		"foreign domain": {asking(func(r *x509.CertificateRequest) {
			r.URIs = []*url.URL{uri("spiffe://other.example/ns/shop/sa/reviews")}
		}), "has proved to be"},
		"escaped name": {asking(func(r *x509.CertificateRequest) {
			r.URIs = []*url.URL{uri("spiffe://mesh.example/ns/shop/sa/%72eviews")}
		}), "has proved to be"},
		"two names":  {asking(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri(reviewsID), uri(reviewsID)} }), "2 URIs"},
		"host":       {asking(func(r *x509.CertificateRequest) { r.DNSNames = []string{"bank.example"} }), `DNS name "bank.example"`},
		"wildcard":   {asking(func(r *x509.CertificateRequest) { r.DNSNames = []string{"*"} }), `DNS name "*"`},
		"address":    {asking(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }), "address 10.0.0.1"},
		"mail":       {asking(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b.example"} }), "mail address"},
		"many names": {asking(many), "may have 16384"},
		"authority": {asking(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: authority}}
		}), "certificate of an authority"},
		"RSA too long":    {request(t, long, nil), "RSA with 4160 bits"},
		"P-521":           {request(t, onCurve(t, elliptic.P521()), nil), "ECDSA on P-521"},
		"P-224":           {request(t, onCurve(t, elliptic.P224()), nil), "ECDSA on P-224"},
		"an unknown kind": {request(t, edwards, nil), "unknown kind"},
	}
	if weak != nil {
		cases["RSA too short"] = struct{ request, want string }{request(t, weak, nil), "RSA with 1024 bits"}
	}
	c := trusting(t, newAuthority(t, time.Hour, nil), ca.Options{})
	for name, one := range cases {
		if issued, err := c.Sign(t.Context(), one.request, reviews, 0); !isRefusal(err, one.want) || issued != nil {
			t.Errorf("%s: %v, want %q", name, err, one.want)
		}
	}
	if _, err := c.Sign(t.Context(), asking(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri(reviewsID)} }), reviews, 0); err != nil {
		t.Error("its own name:", err)
	}
	if _, err := c.Sign(t.Context(), good, ca.Account{Namespace: "shop", Name: "a/b"}, 0); !isRefusal(err, "no part of a SPIFFE ID") {
		t.Error(err)
	}
}

// TestNoAuthority: without an authority nothing is signed, and the reason is said.
func TestNoAuthority(t *testing.T) {
	text := request(t, onCurve(t, elliptic.P256()), nil)
	c := newCA(t, ca.Options{})
	if _, err := c.Sign(t.Context(), text, reviews, 0); !errors.Is(err, ca.ErrNoIssuer) {
		t.Error(err)
	}
	c.SetTrust(&ca.Trust{Lack: "its key is lost"})
	if _, err := c.Sign(t.Context(), text, reviews, 0); !errors.Is(err, ca.ErrNoIssuer) || !strings.Contains(err.Error(), "its key is lost") {
		t.Error(err)
	}
}

// TestARootThatNobodyTrusts checks that files take the place of others only if workloads trust
// the root that signs then.
func TestARootThatNobodyTrusts(t *testing.T) {
	old, next := newAuthority(t, time.Hour, nil), newAuthority(t, time.Hour, nil)
	trust := func(signs *authority, roots ...*authority) *ca.Trust {
		t.Helper()
		pair := signs.pair(t)
		pair.CACertificates = ""
		for _, one := range roots {
			pair.CACertificates += texts(one.root())
		}
		trust, err := ca.FromPair(pair)
		if err != nil {
			t.Fatal(err)
		}
		return trust
	}
	for name, tc := range map[string]struct {
		before, after *ca.Trust
		taken         bool
	}{
		"the first":              {nil, trust(next, next), true},
		"another root":           {trust(old, old), trust(next, next), false},
		"another root signs":     {trust(old, old), trust(next, old, next), false},
		"one root more":          {trust(old, old), trust(old, old, next), true},
		"the new root signs":     {trust(old, old, next), trust(next, old, next), true},
		"the old root goes":      {trust(next, old, next), trust(next, next), true},
		"an intermediate of one": {trust(old, old), trust(newAuthority(t, time.Hour, old), old), true},
	} {
		if err := ca.CheckSuccessor(tc.before, tc.after); (err == nil) != tc.taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnAccountThatAsksForTooMuch is refused for a while, and others are not.
func TestAnAccountThatAsksForTooMuch(t *testing.T) {
	c := trusting(t, newAuthority(t, time.Hour, nil), ca.Options{})
	refused := false
	for range 100_000 {
		// A broken request costs as much of the allowance as a good one.
		if _, err := c.Sign(t.Context(), "", reviews, 0); errors.Is(err, ca.ErrTooMany) {
			refused = true
			break
		}
	}
	if !refused {
		t.Error("an account may ask without end")
	}
	if _, err := c.Sign(t.Context(), request(t, onCurve(t, elliptic.P256()), nil), ca.Account{Namespace: "shop", Name: "other"}, 0); err != nil {
		t.Error(err)
	}
}

// TestUnusableAuthorities: what cannot sign, or leads to no root, is not taken.
func TestUnusableAuthorities(t *testing.T) {
	root := newAuthority(t, time.Hour, nil)
	good, other := root.pair(t), newAuthority(t, time.Hour, nil)
	leaf, err := trusting(t, root, ca.Options{}).Sign(t.Context(), request(t, onCurve(t, elliptic.P256()), nil), reviews, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = leaf
	for name, c := range map[string]struct {
		pair credential.Pair
		want string
	}{
		"no certificate": {credential.Pair{CACertificates: good.CACertificates}, "no certificate"},
		"no root":        {credential.Pair{Certificate: good.Certificate, Key: good.Key}, "the roots"},
		"foreign key":    {credential.Pair{Certificate: good.Certificate, Key: other.pair(t).Key, CACertificates: good.CACertificates}, "not that of the certificate"},
		"foreign root":   {credential.Pair{Certificate: good.Certificate, Key: good.Key, CACertificates: texts(other.root())}, "does not lead to one of the roots"},
	} {
		if _, err := ca.FromPair(c.pair); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzRequests: whatever a sender sends, a signed certificate has its proven name and no other.
func FuzzRequests(f *testing.F) {
	key := onCurve(f, elliptic.P256())
	f.Add([]byte(request(f, key, nil)))
	f.Add([]byte(request(f, key, func(r *x509.CertificateRequest) { r.DNSNames = []string{"*"} })))
	c := trusting(f, newAuthority(f, time.Hour, nil), ca.Options{})
	f.Fuzz(func(t *testing.T, text []byte) {
		issued, err := c.Sign(t.Context(), string(text), ca.Account{Namespace: "shop", Name: fmt.Sprintf("a%d", len(text))}, 0)
		if err != nil {
			return
		}
		leaf := issued.Leaf()
		if leaf.IsCA || len(leaf.URIs) != 1 || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0 {
			t.Errorf("signed %v", leaf)
		}
	})
}

// BenchmarkSign measures a request on P-256 to its certificate.
func BenchmarkSign(b *testing.B) {
	c := trusting(b, newAuthority(b, time.Hour, nil), ca.Options{})
	text := request(b, onCurve(b, elliptic.P256()), nil)
	n := 0
	for b.Loop() {
		n++
		// Each account has an allowance.
		if _, err := c.Sign(b.Context(), text, ca.Account{Namespace: "shop", Name: fmt.Sprint("a", n/500)}, 0); err != nil {
			b.Fatal(err)
		}
	}
}
