package authn_test

import (
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
)

const adasToken = "0123456789abcdef-ada"

func TestAuthorizationHeader(t *testing.T) {
	tokens, err := authn.NewTokenFile(write(t, adasToken+`,ada,7,"shop, admins"`+"\n# a comment\n"), discard)
	if err != nil {
		t.Fatal(err)
	}
	a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens}})
	who, err := ask(a, "bearer "+adasToken)
	if err != nil || who.Name != "ada" || who.UID != "7" || !slices.Equal(who.Groups, []string{"shop", "admins", identity.Authenticated}) {
		t.Errorf("%+v, %v", who, err)
	}
	for name, headers := range map[string][]string{
		"none":           nil,
		"twice":          {"Bearer " + adasToken, "Bearer " + adasToken},
		"twice, one bad": {"Bearer " + adasToken, "Bearer x"},
		"joined":         {"Bearer " + adasToken + ", Bearer x"},
		"other scheme":   {"Basic " + adasToken},
		"no token":       {"Bearer"},
		"blank token":    {"Bearer  "},
		"other token":    {"Bearer " + adasToken + "x"},
		"empty":          {""},
	} {
		_, err := ask(a, headers...)
		var failure *authn.Failure
		if !errors.As(err, &failure) || !strings.HasPrefix(failure.Challenge(), `Bearer realm="pilot-api"`) || strings.Contains(failure.Challenge(), adasToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNobody checks that requests without a proof are somebody only if that is asked for,
// and that a wrong proof never counts as none.
func TestNobody(t *testing.T) {
	nobody := identity.Nobody("readers")
	a := authn.New(authn.Options{Anonymous: &nobody})
	if who, err := ask(a); err != nil || who.Name != identity.Anonymous || who.IsProved() {
		t.Errorf("%+v, %v", who, err)
	}
	if _, err := ask(a, "Bearer "+adasToken); err == nil {
		t.Error("a wrong token counts as none")
	}
}

func TestTokenFileMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"short,ada,1":                               "line 1: a token must have at least 16 characters",
		adasToken + ",ada":                          "line 1: must be token,user,uid",
		adasToken + ", ,1":                          "line 1: the user name is empty",
		"\n" + adasToken + ",ada,1,a,b":             "line 2: must be token,user,uid",
		adasToken + ",ada,1\n" + adasToken + ",x,2": "line 2: its token stands on an earlier line, too",
		adasToken + `,"ada,1`:                       `extraneous or missing " in quoted-field`,
	} {
		_, err := authn.NewTokenFile(write(t, text), discard)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), adasToken) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestTokenFileIsFollowed checks that a token that is gone from the file counts no longer,
// although it was proved before, and that a broken file changes nothing.
func TestTokenFileIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := write(t, adasToken+",ada,1")
		tokens, err := authn.NewTokenFile(name, discard)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = tokens.Run(t.Context()) }()
		a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens}})
		for _, step := range []struct {
			text string
			ada  bool
		}{{adasToken + ",ada,1", true}, {"nonsense", true}, {adasToken + "2,ada,1", false}, {adasToken + ",ada,1", true}} {
			if err := os.WriteFile(name, []byte(step.text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			if _, err := ask(a, "Bearer "+adasToken); (err == nil) != step.ada {
				t.Errorf("after %q: %v", step.text, err)
			}
		}
	})
}

// TestCertificates checks who a client certificate is, and that one proves nothing after its
// end, after its revocation and after the end of its authority, on an open connection, too.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	authority := selfsigned.NewAuthority(t, dir)
	authority.IssueUser(t, time.Hour, "ada", "shop", "admins")
	authority.IssueUser(t, time.Hour, "bob")
	authority.IssueUser(t, 2*time.Second, "short")
	authority.Revoke(t)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Certificate)
	trusted := pool
	certificates, err := authn.NewCertificates(authn.CertificateOptions{
		Authorities: func() *x509.CertPool { return trusted }, CRLFile: filepath.Join(dir, "authority.crl"), Log: discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	a := authn.New(authn.Options{Certificates: certificates})
	request := func(name string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = connection(t, dir, name, pool)
		return r
	}
	ada, bob, short := request("ada"), request("bob"), request("short")
	proves := func(r *http.Request) bool { _, err := a.Authenticate(r); return err == nil }
	if who, err := a.Authenticate(ada); err != nil || who.Name != "ada" || !slices.Equal(who.Groups, []string{"shop", "admins", identity.Authenticated}) {
		t.Errorf("%+v, %v", who, err)
	}
	if !proves(bob) || !proves(short) {
		t.Error("a good certificate proves nothing")
	}
	time.Sleep(time.Until(short.TLS.PeerCertificates[0].NotAfter) + time.Second)
	if proves(short) {
		t.Error("a certificate proves something after its end")
	}
	ctx, stop := t.Context(), func() {}
	defer stop()
	go func() { _ = certificates.Run(ctx) }()
	authority.Revoke(t, "bob")
	for deadline := time.Now().Add(10 * time.Second); proves(bob); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a revoked certificate still proves something")
		}
	}
	if !proves(ada) {
		t.Error("another certificate is revoked, too")
	}
	trusted = x509.NewCertPool()
	if proves(ada) {
		t.Error("a certificate of an authority that is gone proves something")
	}
	ada.TLS.VerifiedChains = nil
	trusted = pool
	if proves(ada) {
		t.Error("a certificate that was not verified proves something")
	}
}

func TestReplicaKey(t *testing.T) {
	var ours, theirs, none authn.ReplicaKey
	ours.Set([]byte(strings.Repeat("a", 32)))
	theirs.Set([]byte(strings.Repeat("b", 32)))
	a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{&ours}})
	if who, err := ask(a, "Bearer "+ours.Token("r1")); err != nil || who.Name != "system:replica:r1" || !who.In(identity.Replicas) {
		t.Errorf("%+v, %v", who, err)
	}
	good := ours.Token("r1")
	for _, token := range []string{theirs.Token("r1"), good + "x", "pilot-replica.", "pilot-replica." + strings.Split(good, ".")[1], none.Token("r1")} {
		if who, err := ask(a, "Bearer "+token); err == nil {
			t.Errorf("%q: %+v", token, who)
		}
	}
	if _, err := ask(authn.New(authn.Options{Tokens: []authn.TokenVerifier{&none}}), "Bearer "+good); err == nil {
		t.Error("a key that is not known yet proves a token")
	}
	synctest.Test(t, func(t *testing.T) {
		token := ours.Token("r1")
		time.Sleep(2 * time.Minute)
		if _, err := ask(authn.New(authn.Options{Tokens: []authn.TokenVerifier{&ours}}), "Bearer "+token); err == nil {
			t.Error("a token counts after its end")
		}
	})
}

// FuzzAuthorization looks for a header that proves somebody without a good token, or that
// breaks the server.
func FuzzAuthorization(f *testing.F) {
	var key authn.ReplicaKey
	key.Set([]byte(strings.Repeat("a", 32)))
	oidc, err := authn.NewOIDC(authn.Issuer{URL: "https://issuer.example", ClientID: "pilot"}, discard)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("Bearer a.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIn0.c")
	f.Add("Bearer pilot-replica.eyJzdWIiOiJ4In0.AAAA")
	f.Add("bearer\t")
	f.Fuzz(func(t *testing.T, header string) {
		a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{&key, oidc}})
		if who, err := ask(a, header); err == nil {
			t.Errorf("%q proves %+v", header, who)
		}
	})
}
