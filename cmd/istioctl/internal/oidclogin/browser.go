package oidclogin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// patience is how long a person may take in the browser.
	patience = 10 * time.Minute
	// callbackPath is where the issuer sends the browser back to.
	callbackPath = "/callback"
	// mostHeader bounds a request of the browser, in bytes.
	mostHeader = 64 << 10
)

// byBrowser lets a person log in with a browser on this machine, which the issuer sends back
// to a port here (RFC 8252) with a code. The code is of use only with a secret that never
// leaves this process (PKCE, RFC 7636).
func (i Issuer) byBrowser(ctx context.Context, config *oauth2.Config, provider *oidc.Provider, ways Ways) (*oauth2.Token, error) {
	if !strings.HasPrefix(config.Endpoint.AuthURL, "https://") {
		return nil, fmt.Errorf("its page %q for logins must begin with https://", config.Endpoint.AuthURL)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(ways.Port)))
	if err != nil {
		return nil, err
	}
	back := newCallback(i.URL, listener.Addr().String())
	stop := back.serve(listener)
	defer stop()
	config.RedirectURL = "http://" + back.host + callbackPath
	nonce, verifier := rand.Text(), oauth2.GenerateVerifier()
	page := config.AuthCodeURL(back.state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier))
	if ways.Open != nil {
		if err := ways.Open(page); err != nil && config.Endpoint.DeviceAuthURL != "" {
			return byDevice(ctx, config, ways.Tell)
		}
	}
	ways.Tell(page, "")
	code, err := back.wait(ctx)
	if err != nil {
		return nil, err
	}
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, err
	}
	return token, i.checkNonce(ctx, provider, token, nonce)
}

// checkNonce returns an error unless a token is the answer to the request with a nonce.
func (i Issuer) checkNonce(ctx context.Context, provider *oidc.Provider, token *oauth2.Token, nonce string) error {
	text, _ := token.Extra("id_token").(string)
	proved, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: i.ClientID}).Verify(ctx, text)
	switch {
	case err != nil:
		return errors.New("its id_token proves nothing: it has another signature, audience or end than it must have")
	case subtle.ConstantTimeCompare([]byte(proved.Nonce), []byte(nonce)) != 1:
		return errors.New("its id_token is the answer to another login")
	}
	return nil
}

// callback waits for the browser to come back. It takes one answer, and only one with its
// state, so that no other page can end the login or put its own account in the place of the
// person's.
type callback struct {
	issuer, host, state string
	taken               atomic.Bool
	answers             chan url.Values
}

func newCallback(issuer, host string) *callback {
	return &callback{issuer: issuer, host: host, state: rand.Text(), answers: make(chan url.Values, 1)}
}

// serve answers requests until stop is called, which lets an answer that began come to its
// end.
func (c *callback) serve(listener net.Listener) (stop func()) {
	server := &http.Server{Handler: c, ReadTimeout: timeout, WriteTimeout: timeout, MaxHeaderBytes: mostHeader}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // It ends with stop.
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-ended
	}
}

// ServeHTTP implements http.Handler.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for name, value := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'", "Connection": "close",
	} {
		w.Header().Set(name, value)
	}
	ours := r.Method == http.MethodGet && r.Host == c.host && r.URL.Path == callbackPath &&
		subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(c.state)) == 1
	if !ours || !c.taken.CompareAndSwap(false, true) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	c.answers <- query
	_, _ = fmt.Fprintln(w, "istioctl has the answer. Close this page and go back to the terminal.")
}

// wait returns the code of the answer.
func (c *callback) wait(ctx context.Context) (string, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case answer := <-c.answers:
		return c.code(answer)
	case <-timer.C:
		return "", fmt.Errorf("nobody has logged in within %v", patience)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// code returns the code of an answer.
func (c *callback) code(answer url.Values) (string, error) {
	from := answer.Get("iss") // RFC 9207: not every issuer names itself.
	switch {
	case from != "" && from != c.issuer:
		return "", fmt.Errorf("the answer is of another issuer: %.200q", from)
	case answer.Get("error") != "":
		return "", fmt.Errorf("the login was refused: %.200q %.500q", answer.Get("error"), answer.Get("error_description"))
	case answer.Get("code") == "":
		return "", errors.New("the answer has no code")
	}
	return answer.Get("code"), nil
}
