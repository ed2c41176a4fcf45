package oidclogin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/internal/wholefile"
)

// Issuer is an OpenID Connect issuer at which people log in.
type Issuer struct {
	URL      string `json:"issuer"`
	ClientID string `json:"clientID"`
	// CAFile has the authorities of the issuer's server; "" means those of the system.
	CAFile string   `json:"certificateAuthority,omitempty"`
	Scopes []string `json:"scopes,omitempty"` // besides openid and offline_access
}

// timeout bounds each request to an issuer.
const timeout = 30 * time.Second

// early is how long before its end a token is replaced.
const early = time.Minute

// tokens is the content of the file.
type tokens struct {
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"clientID"`
	IDToken      string    `json:"idToken"`
	End          time.Time `json:"end"`
	RefreshToken string    `json:"refreshToken,omitempty"`
}

// good reports whether the token is good for another request.
func (t tokens) good() bool { return time.Until(t.End) > early }

// client returns a context with the HTTP client for requests to the issuer.
func (i Issuer) client(ctx context.Context) (context.Context, error) {
	if !strings.HasPrefix(i.URL, "https://") {
		return nil, fmt.Errorf("issuer %q: its URL must begin with https://", i.URL)
	}
	authorities, err := credential.Authorities(i.CAFile)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
	return oidc.ClientContext(ctx, &http.Client{Timeout: timeout, Transport: transport}), nil
}

// config asks the issuer where it answers.
func (i Issuer) config(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	provider, err := oidc.NewProvider(ctx, i.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("issuer %s: %w", i.URL, err)
	}
	config := &oauth2.Config{
		ClientID: i.ClientID, Endpoint: provider.Endpoint(),
		Scopes: append([]string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess}, i.Scopes...),
	}
	// This program has no secret. To try both styles would use up a code.
	config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	return config, provider, nil
}

// keep writes tokens into the file, and returns them.
func keep(i Issuer, file string, token *oauth2.Token) (tokens, error) {
	text, _ := token.Extra("id_token").(string)
	if text == "" {
		return tokens{}, fmt.Errorf("issuer %s gave no id_token", i.URL)
	}
	end, err := endOf(text)
	if err != nil {
		return tokens{}, fmt.Errorf("issuer %s: its id_token: %w", i.URL, err)
	}
	kept := tokens{Issuer: i.URL, ClientID: i.ClientID, IDToken: text, End: end, RefreshToken: token.RefreshToken}
	out, err := json.Marshal(kept)
	if err != nil {
		return tokens{}, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return tokens{}, err
	}
	return kept, wholefile.WriteText(file, 0o600, out)
}

// endOf returns when a token ends. The server that gets the token checks its signature.
func endOf(token string) (time.Time, error) {
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
		return time.Time{}, err
	}
	if claims.ExpiresAt == nil {
		return time.Time{}, errors.New("it has no claim exp")
	}
	return claims.ExpiresAt.Time, nil
}

// ErrNoLogin means that nobody has logged in, or that the login has ended.
var ErrNoLogin = errors.New("log in with 'istioctl login'")

// Source gives the token of a login, and replaces it before it ends. It is safe for concurrent
// use.
type Source struct {
	Issuer Issuer
	File   string

	mu sync.Mutex
}

// Token returns a token for a request, and its end.
func (s *Source) Token(ctx context.Context) (token string, end time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, err := s.read()
	if err == nil && !known.good() {
		known, err = s.renewed(ctx, known)
	}
	if err != nil {
		return "", time.Time{}, err
	}
	return known.IDToken, known.End, nil
}

// renewed returns new tokens in the place of those that end.
func (s *Source) renewed(ctx context.Context, ending tokens) (tokens, error) {
	if ending.RefreshToken == "" {
		return tokens{}, fmt.Errorf("the login has ended: %w", ErrNoLogin)
	}
	ctx, err := s.Issuer.client(ctx)
	if err != nil {
		return tokens{}, err
	}
	config, _, err := s.Issuer.config(ctx)
	if err != nil {
		return tokens{}, err
	}
	next, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: ending.RefreshToken}).Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		// An issuer may take each refresh token once, and another process may have used it.
		if known, err := s.read(); err == nil && known.good() {
			return known, nil
		}
		return tokens{}, fmt.Errorf("the issuer no longer accepts the login: %w", ErrNoLogin)
	case err != nil:
		return tokens{}, err
	}
	return keep(s.Issuer, s.File, next)
}

// read reads the file. Tokens of another issuer or client do not count.
func (s *Source) read() (tokens, error) {
	var known tokens
	text, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		return known, ErrNoLogin
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return known, fmt.Errorf("%s: %w", s.File, err)
	}
	if known.Issuer != s.Issuer.URL || known.ClientID != s.Issuer.ClientID {
		return known, fmt.Errorf("the login is one at another issuer: %w", ErrNoLogin)
	}
	return known, nil
}
