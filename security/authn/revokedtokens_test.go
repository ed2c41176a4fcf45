package authn_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pilot-api/pilot-api/security/authn"
)

// sharedText is a text in memory.
type sharedText struct {
	mu        sync.Mutex
	text      string
	followers []chan string
}

func (s *sharedText) Update(_ context.Context, change func(string) (string, error)) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := change(s.text)
	if err != nil {
		return "", err
	}
	s.text = next
	for _, f := range s.followers {
		f <- next
	}
	return next, nil
}

func (s *sharedText) Follow(ctx context.Context, changed func(string)) error {
	texts := make(chan string, 1000)
	s.mu.Lock()
	texts <- s.text
	s.followers = append(s.followers, texts)
	s.mu.Unlock()
	for {
		select {
		case text := <-texts:
			changed(text)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newServer returns one of several servers that issue and revoke tokens.
func newServer(t *testing.T, key ed25519.PrivateKey, text *sharedText) (*authn.AccountTokens, *authn.Authenticator) {
	accounts := &authn.Accounts{}
	for _, name := range []string{"ci", "web"} {
		accounts.Put("shop", name, "uid-"+name)
	}
	tokens := authn.NewAccountTokens(accounts)
	tokens.SetKeys([]ed25519.PrivateKey{key})
	tokens.ShareRevoked(text)
	read := make(chan struct{})
	go func() { _ = tokens.FollowRevoked(t.Context(), func() { close(read) }) }()
	<-read
	return tokens, authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens.For(authn.AudienceAPI)}})
}

// idOf returns the ID of a token.
func idOf(t *testing.T, token string) string {
	t.Helper()
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
		t.Fatal(err)
	}
	return claims.ID
}

// TestRevokedTokens revokes one of two tokens of an account at one server: it proves nothing
// at all servers, also at one that starts later, and the other one does. A foreign account
// cannot end it. When it has ended, its entry leaves.
func TestRevokedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, text := newKey(t), &sharedText{}
		one, first := newServer(t, key, text)
		_, second := newServer(t, key, text)
		issue := func(life time.Duration) string {
			token, _, err := one.Issue(authn.AccountClaims{Namespace: "shop", Name: "ci", UID: "uid-ci", Audiences: []string{authn.AudienceAPI}, Life: life})
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		bad, good := issue(time.Hour), issue(2*time.Hour)
		want := func(a *authn.Authenticator, token string, proves bool) {
			t.Helper()
			synctest.Wait()
			if _, err := ask(a, "Bearer "+token); (err == nil) != proves {
				t.Errorf("proves = %v, want %v: %v", err == nil, proves, err)
			}
		}
		revoke := func(uid, id string) error {
			return one.Revoke(t.Context(), authn.RevokedToken{Namespace: "shop", UID: uid, ID: id})
		}
		want(first, bad, true)
		want(second, bad, true)
		if err := revoke("uid-web", idOf(t, bad)); err != nil {
			t.Error(err)
		}
		want(first, bad, true)
		for range 2 {
			if err := revoke("uid-ci", idOf(t, bad)); err != nil {
				t.Error(err)
			}
		}
		_, third := newServer(t, key, text)
		for _, a := range []*authn.Authenticator{first, second, third} {
			want(a, bad, false)
			want(a, good, true)
		}
		if _, err := text.Update(t.Context(), func(string) (string, error) { return "", nil }); err != nil {
			t.Fatal(err)
		}
		want(first, bad, false) // Nothing takes a revocation back, also no older text.
		if err := revoke("uid-ci", idOf(t, bad)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour + time.Minute)
		if err := revoke("uid-ci", idOf(t, good)); err != nil || strings.Count(text.text, "\n") != 1 {
			t.Errorf("%v; the text has %q", err, text.text)
		}
		want(first, good, false)
	})
}

// TestRevokedTokensAreBounded revokes tokens that were never issued: the list has bounds, and
// takes IDs of no other form.
func TestRevokedTokensAreBounded(t *testing.T) {
	text := &sharedText{}
	tokens, _ := newServer(t, newKey(t), text)
	revoke := func(namespace, uid, id string) error {
		return tokens.Revoke(t.Context(), authn.RevokedToken{Namespace: namespace, UID: uid, ID: id})
	}
	for id, want := range map[string]error{
		"": authn.ErrNoToken, "a b": authn.ErrNoToken, "x\ny z": authn.ErrNoToken, strings.Repeat("A", 26): authn.ErrNoToken,
		strings.Repeat("A", 26) + "-fffffffffff": authn.ErrNoToken, strings.Repeat("A", 26) + "-ffffffffff": authn.ErrNoToken,
		strings.Repeat("A", 26) + "-1": nil,
	} {
		if err := revoke("shop", "uid", id); !errors.Is(err, want) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if text.text != "" {
		t.Errorf("the text has %q", text.text)
	}
	fill := func(namespace string, accounts int) (taken int, err error) {
		for account := range accounts {
			for a := range 11 {
				for b := range 10 {
					id := fmt.Sprintf("%s%c%c-%x", strings.Repeat("A", 24), 'A'+a, 'A'+b, time.Now().Add(time.Hour).Unix())
					if e := revoke(namespace, fmt.Sprint(namespace, account), id); e != nil {
						err = e
						continue
					}
					taken++
				}
			}
		}
		return taken, err
	}
	if n, err := fill("shop", 1); n != 100 || !errors.Is(err, authn.ErrTooManyRevoked) {
		t.Errorf("of one account: %d, %v", n, err)
	}
	if n, err := fill("bank", 11); n != 1000 || !errors.Is(err, authn.ErrTooManyRevoked) {
		t.Errorf("of one namespace: %d, %v", n, err)
	}
}
