package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Authority is the state of the certificate authority of the mesh.
type Authority struct {
	// Authorities are the roots that workloads trust, the oldest first.
	Authorities []Root `json:"authorities"`
	// Lack says why the server that answers cannot sign; "" if it can.
	Lack string `json:"lack,omitempty"`
	// Revoked is the number of revoked certificates that have perhaps not ended.
	Revoked int `json:"revoked,omitempty"`
	// Next is the next step of the rotation of the root, and Blocked says why it would cut
	// somebody off. Next is "" if the authority is in files.
	Next    string   `json:"next,omitempty"`
	Blocked []string `json:"blocked,omitempty"`
	// Proxies is the number of connected proxies that take the roots from the servers, and
	// Trusting that of those that have acknowledged all of them.
	Proxies  int `json:"proxies"`
	Trusting int `json:"trusting"`
}

// Root is an authority that workloads trust.
type Root struct {
	Name     string    `json:"name"` // the beginning of its fingerprint
	Subject  string    `json:"subject"`
	NotAfter time.Time `json:"notAfter"`
	Signs    bool      `json:"signs,omitempty"`
	// LastEnd is when the last certificate ends that it may have signed; zero if that is not
	// known.
	LastEnd time.Time `json:"lastEnd,omitzero"`
}

// Authority returns the state of the certificate authority of the mesh.
func (c *Client) Authority(ctx context.Context) (*Authority, error) {
	var found Authority
	err := c.ask(ctx, registry+"authority", nil, &found, func() error { return member("authorities", found.Authorities != nil) })
	if err != nil {
		return nil, err
	}
	return &found, nil
}

// RotateAuthority does a step of the rotation of the root: add, sign, drop or cancel. The error
// is store.ErrConflict if the step is not the next one, or if it would cut somebody off and
// force is false.
func (c *Client) RotateAuthority(ctx context.Context, step string, force bool) (*Authority, error) {
	return c.changeAuthority(ctx, "rotation", map[string]any{"step": step, "force": force})
}

// RevokeCertificate ends a certificate of a workload before its time, by its serial number in
// hexadecimal. The server refuses a number of which it has issued no certificate, unless force is
// true.
func (c *Client) RevokeCertificate(ctx context.Context, serial string, force bool) (*Authority, error) {
	return c.changeAuthority(ctx, "revocations", map[string]any{"serial": serial, "force": force})
}

// changeAuthority sends a change of the authority, and returns its state after that.
func (c *Client) changeAuthority(ctx context.Context, what string, change map[string]any) (*Authority, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	var found Authority
	r := request{method: http.MethodPost, url: c.at(registry+"authority/"+what, nil), body: body, contentType: jsonType}
	if err := c.exchange(ctx, r, &found, func() error { return member("authorities", found.Authorities != nil) }); err != nil {
		return nil, err
	}
	return &found, nil
}
