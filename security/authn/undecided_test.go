package authn_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
)

// TestUnreachableIssuer checks that a token is not called wrong while the keys of its issuer
// cannot be fetched: the failure says so, costs the address nothing, and is in the log once.
func TestUnreachableIssuer(t *testing.T) {
	for name, instead := range map[string]http.HandlerFunc{
		"a failure":       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) },
		"nonsense":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"a long answer":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 2<<20)) },
		"no answer":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"never reachable": nil,
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			i.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			var log bytes.Buffer
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
			v, err := authn.NewOIDC(authn.Issuer{URL: i.URL, ClientID: "pilot", CAFile: write(t, string(ca))}, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			if instead != nil {
				i.instead.Store(instead)
				i.run(t, v)
			}
			file, err := authn.NewTokenFile(write(t, adasToken+",ada,1"), discard)
			if err != nil {
				t.Fatal(err)
			}
			a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{v, file}})
			token := i.token(t, nil)
			for range 50 {
				_, err := ask(a, "Bearer "+token)
				var failure *authn.Failure
				if !errors.As(err, &failure) || !failure.Undecided || failure.RetryAfter <= 0 || !strings.Contains(failure.Reason, "its issuer "+i.URL) || strings.Contains(failure.Reason, token[:20]) {
					t.Fatalf("%#v", err)
				}
			}
			if _, err := ask(a, "Bearer "+adasToken); err != nil {
				t.Errorf("another token of the address: %v", err)
			}
			if n := strings.Count(log.String(), "the keys of an issuer cannot be fetched"); instead != nil && n != 1 {
				t.Errorf("the log has the cause %d times:\n%s", n, log.String())
			}
		})
	}
}

// TestWrongTokensOfAReachableIssuer checks that no token passes for one whose keys cannot be fetched.
func TestWrongTokensOfAReachableIssuer(t *testing.T) {
	i := newIssuer(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	unknown := jwt.NewWithClaims(jwt.SigningMethodRS256, i.claims(nil))
	unknown.Header["kid"] = "failed to verify signature: fetching keys"
	text, err := unknown.SignedString(other)
	if err != nil {
		t.Fatal(err)
	}
	a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{i.verifier(t, nil)}})
	for _, token := range []string{
		text, signed(t, jwt.SigningMethodRS256, other, i.claims(nil)), i.token(t, jwt.MapClaims{"aud": "failed to verify signature: fetching keys"}),
		i.token(t, jwt.MapClaims{"sub": nil}), i.token(t, jwt.MapClaims{"exp": 1}),
	} {
		_, err := ask(a, "Bearer "+token)
		var failure *authn.Failure
		if !errors.As(err, &failure) || failure.Undecided || failure.RetryAfter != 0 {
			t.Errorf("%#v", err)
		}
	}
}

// wavering proves every token, until it is away.
type wavering struct {
	away, wrong atomic.Bool
	end         time.Time
}

func (*wavering) Epoch() uint64 { return 0 }

func (w *wavering) Verify(context.Context, string) (identity.Identity, time.Time, error) {
	switch {
	case w.wrong.Load():
		return identity.Identity{}, time.Time{}, errors.New("it has ended")
	case w.away.Load():
		return identity.Identity{}, time.Time{}, fmt.Errorf("%w: nobody is there", authn.ErrUndecided)
	}
	return identity.Identity{Name: "ada"}, w.end, nil
}

// TestWhatRunsGoesOnWithoutAVerdict checks for how long a result counts while nobody can verify
// the token again: not for other requests, and for what runs until a bound, or the token's end.
func TestWhatRunsGoesOnWithoutAVerdict(t *testing.T) {
	for _, tc := range []struct{ life, from, goes, stops time.Duration }{
		{24 * time.Hour, 11 * time.Minute, 19 * time.Minute, 21 * time.Minute},
		{15 * time.Minute, 11 * time.Minute, 14 * time.Minute, 16 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			source := &wavering{end: time.Now().Add(tc.life)}
			a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{source}})
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Authorization", "Bearer a")
			if _, err := a.Authenticate(r); err != nil {
				t.Fatal(err)
			}
			source.away.Store(true)
			began := time.Now()
			at := func(when time.Duration) { time.Sleep(time.Until(began.Add(when))) }
			at(tc.from)
			if _, err := a.Authenticate(r); err == nil {
				t.Error("another request is answered without a verdict")
			}
			at(tc.goes)
			if who, err := a.Again(r); err != nil || who.Name != "ada" {
				t.Errorf("after %v: %v", tc.goes, err)
			}
			at(tc.stops)
			if _, err := a.Again(r); err == nil {
				t.Errorf("goes on after %v", tc.stops)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		source := &wavering{end: time.Now().Add(time.Hour)}
		a := authn.New(authn.Options{Tokens: []authn.TokenVerifier{source}})
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer a")
		if _, err := a.Authenticate(r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Minute)
		source.wrong.Store(true)
		if _, err := a.Again(r); err == nil {
			t.Error("a token that proves nothing counts")
		}
		source.wrong.Store(false)
		source.away.Store(true)
		if _, err := a.Again(r); err == nil {
			t.Error("a token that proved nothing counts while nobody can verify it")
		}
	})
}
