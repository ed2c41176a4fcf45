package authn

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// issuerTimeout bounds a request to an issuer.
	issuerTimeout = 10 * time.Second
	// issuerCooldown is how long an answer of an issuer is used again. A token with an
	// unknown key makes the library ask for the keys; so wrong tokens cannot make this
	// server ask more often.
	issuerCooldown = 10 * time.Second
	// maxIssuerAnswer bounds an answer of an issuer, in bytes.
	maxIssuerAnswer = 1 << 20
	// mostIssuerURLs bounds the answers that are kept: the configuration and the keys.
	mostIssuerURLs = 8
)

// issuerClient returns a client for requests to an issuer.
func issuerClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in it", caFile)
		}
	}
	return &http.Client{Timeout: issuerTimeout, Transport: &cooling{next: transport, now: time.Now, kept: map[string]*keptAnswer{}}}, nil
}

// cooling is a transport for GETs that asks for the same URL once in issuerCooldown.
type cooling struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	kept map[string]*keptAnswer
}

// keptAnswer is an answer, or the failure to get one.
type keptAnswer struct {
	mu   sync.Mutex // held while the issuer is asked
	at   time.Time
	resp http.Response
	body []byte
	err  error
}

// RoundTrip implements http.RoundTripper.
func (c *cooling) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return nil, fmt.Errorf("%s: an issuer is only read", r.Method)
	}
	kept, err := c.at(r.URL.String())
	if err != nil {
		return nil, err
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if now := c.now(); kept.at.IsZero() || now.Sub(kept.at) >= issuerCooldown {
		kept.ask(c.next, r)
		kept.at = c.now()
	}
	if kept.err != nil {
		return nil, kept.err
	}
	resp := kept.resp
	resp.Request, resp.Header, resp.Body = r, kept.resp.Header.Clone(), io.NopCloser(bytes.NewReader(kept.body))
	return &resp, nil
}

func (c *cooling) at(url string) (*keptAnswer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[url] == nil {
		if len(c.kept) >= mostIssuerURLs {
			return nil, fmt.Errorf("the issuer names too many URLs")
		}
		c.kept[url] = &keptAnswer{}
	}
	return c.kept[url], nil
}

func (k *keptAnswer) ask(next http.RoundTripper, r *http.Request) {
	k.body = nil
	resp, err := next.RoundTrip(r)
	if k.err = err; err != nil {
		return
	}
	defer resp.Body.Close()
	k.resp = *resp
	k.body, k.err = io.ReadAll(io.LimitReader(resp.Body, maxIssuerAnswer+1))
	if k.err == nil && len(k.body) > maxIssuerAnswer {
		k.err = fmt.Errorf("the answer of the issuer is larger than %d bytes", maxIssuerAnswer)
	}
}
