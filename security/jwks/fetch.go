package jwks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pilot-api/pilot-api/credential"
)

// discoveryPath is where an issuer says where its keys are.
const discoveryPath = "/.well-known/openid-configuration"

// newClient returns a client that connects to the allowed addresses alone.
func newClient(o Options) (*http.Client, error) {
	blocks := make([]netip.Prefix, len(o.Addresses))
	for i, text := range o.Addresses {
		block, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		blocks[i] = block
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in it", o.CAFile)
		}
	}
	// Control sees the address after the name was resolved.
	dialer := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(at.Addr(), blocks) {
			return errAddress
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: settings,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

var errAddress = errors.New("the address is not one from which keys are fetched (jwksFetching.addresses of the mesh settings)")

// closedBlocks are blocks from which no keys are fetched unless the operator says so: addresses of IPv6
// that stand for some of IPv4, and the services by which clouds give credentials to machines.
var closedBlocks = []netip.Prefix{
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("168.63.129.16/32"),
}

// allowed reports whether keys may be fetched from an address. Without blocks, these are all
// but those of the machine and its link. The zone of an address does not count: with one,
// netip finds the address in no block.
func allowed(address netip.Addr, blocks []netip.Prefix) bool {
	address = address.WithZone("").Unmap()
	if len(blocks) > 0 {
		return within(address, blocks)
	}
	return address.IsGlobalUnicast() && !within(address, closedBlocks) && !isOwn(address)
}

func within(address netip.Addr, blocks []netip.Prefix) bool {
	return slices.ContainsFunc(blocks, func(block netip.Prefix) bool { return block.Contains(address) })
}

// isOwn reports whether an address is one of this machine. If they are not known, it is.
func isOwn(address netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(a net.Addr) bool {
		block, err := netip.ParsePrefix(a.String())
		return err == nil && block.Addr().Unmap() == address
	})
}

// fetch returns the public keys of a source. The error is for everybody: it has nothing of an
// answer. cause is for the log.
func (f *Fetcher) fetch(ctx context.Context, source Source, patience time.Duration) (keys string, err, cause error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := source.URI
	if at == "" {
		if at, err, cause = f.discover(ctx, source.Issuer); err != nil {
			return "", err, cause
		}
	}
	text, err, cause := f.read(ctx, at)
	if err != nil {
		return "", fmt.Errorf("%s %w", shown(at), err), cause
	}
	if keys, err = credential.PublicKeys(text); err != nil {
		return "", fmt.Errorf("the key set at %s cannot be used: %w", shown(at), err), nil
	}
	return keys, nil, nil
}

// discover asks an issuer where its keys are.
func (f *Fetcher) discover(ctx context.Context, issuer string) (at string, err, cause error) {
	document := strings.TrimSuffix(issuer, "/") + discoveryPath
	text, err, cause := f.read(ctx, document)
	if err != nil {
		return "", fmt.Errorf("%s %w", shown(document), err), cause
	}
	var found struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if json.Unmarshal(text, &found) != nil || found.Issuer != issuer {
		return "", fmt.Errorf("%s does not say that it is for this issuer", shown(document)), nil
	}
	if u, err := url.Parse(found.JWKSURI); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", fmt.Errorf("%s names no https URL with the keys", shown(document)), nil
	}
	return found.JWKSURI, nil, nil
}

// read returns the text at a URL.
func (f *Fetcher) read(ctx context.Context, at string) (text []byte, err, cause error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, errors.New("is no URL"), err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "pilot-api")
	resp, err := f.client.Do(r)
	switch {
	case errors.Is(err, errAddress):
		return nil, fmt.Errorf("cannot be asked: %w", errAddress), err
	case ctx.Err() != nil:
		return nil, errors.New("does not answer in time"), err
	case err != nil:
		return nil, errors.New("cannot be reached"), err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answers %d", resp.StatusCode), nil
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, credential.MaxKeySet+1))
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("does not end its answer in time"), err
	case err != nil:
		return nil, errors.New("breaks off its answer"), err
	case len(text) > credential.MaxKeySet:
		return nil, fmt.Errorf("answers more than %d bytes", credential.MaxKeySet), nil
	}
	return text, nil, nil
}

// shown returns a URL without its query, which may have a secret.
func shown(at string) string {
	before, _, _ := strings.Cut(at, "?")
	return before
}
