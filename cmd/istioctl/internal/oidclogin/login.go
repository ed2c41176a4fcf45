package oidclogin

import (
	"context"
	"fmt"

	"golang.org/x/oauth2"
)

// Ways are the ways in which a person can log in.
type Ways struct {
	// Open opens a page in a browser on this machine; nil if there is no browser.
	Open func(page string) error
	// Port is the port of this machine to which the issuer sends the browser back; 0 means
	// any free one.
	Port int
	// Tell shows a page that the person opens, and the code to enter there. The code is ""
	// for a page that must be opened in a browser on this machine. Tell is also called after
	// Open, because a browser may show nothing.
	Tell func(page, code string)
}

// Login lets a person log in at the issuer, and writes the tokens into a file: in a browser
// on this machine if there is one and the issuer can send it back, and otherwise by a page
// and a code, on any device.
func Login(ctx context.Context, i Issuer, file string, ways Ways) error {
	ctx, err := i.client(ctx)
	if err != nil {
		return err
	}
	config, provider, err := i.config(ctx)
	if err != nil {
		return err
	}
	browser, device := config.Endpoint.AuthURL != "", config.Endpoint.DeviceAuthURL != ""
	var token *oauth2.Token
	switch {
	case browser && (ways.Open != nil || !device):
		token, err = i.byBrowser(ctx, config, provider, ways)
	case device:
		token, err = byDevice(ctx, config, ways.Tell)
	default:
		return fmt.Errorf("issuer %s offers neither a login in a browser nor one by another device (RFC 8628)", i.URL)
	}
	if err != nil {
		return fmt.Errorf("issuer %s: %w", i.URL, err)
	}
	_, err = keep(i, file, token)
	return err
}

// byDevice lets a person log in on any device (RFC 8628).
func byDevice(ctx context.Context, config *oauth2.Config, tell func(page, code string)) (*oauth2.Token, error) {
	began, err := config.DeviceAuth(ctx)
	if err != nil {
		return nil, err
	}
	page := began.VerificationURIComplete
	if page == "" {
		page = began.VerificationURI
	}
	tell(page, began.UserCode)
	return config.DeviceAccessToken(ctx, began)
}
