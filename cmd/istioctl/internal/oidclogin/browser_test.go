package oidclogin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
	"github.com/pilot-api/pilot-api/internal/oidcissuer"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// browser is one that trusts the issuer.
type browser struct {
	*http.Client
	t *testing.T
}

// open opens a page and follows its redirects. It returns the status and the text of the last
// one.
func (b browser) open(page string) (int, string) {
	resp, err := b.Get(page)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// loginBy logs in with a browser, and returns what the person is told at the end.
func loginBy(t *testing.T, i *oidcissuer.Issuer, at oidclogin.Issuer, file string) (shown string, err error) {
	t.Helper()
	b, shows := browser{i.Client(), t}, make(chan string, 1)
	ways := silent
	ways.Open = func(page string) error {
		go func() { _, text := b.open(page); shows <- text }()
		return nil
	}
	err = oidclogin.Login(t.Context(), at, file, ways)
	return <-shows, err
}

// TestLoginInABrowser checks a login by the browser of this machine, and that a second one
// needs nothing of the first.
func TestLoginInABrowser(t *testing.T) {
	i, at := newIssuer(t)
	file := filepath.Join(t.TempDir(), "prod.json")
	for _, want := range []string{"1", "2"} {
		shown, err := loginBy(t, i, at, file)
		if err != nil || !strings.Contains(shown, "go back to the terminal") {
			t.Fatalf("%v; the browser shows %q", err, shown)
		}
		source := &oidclogin.Source{Issuer: at, File: file}
		if token, _, err := source.Token(t.Context()); err != nil || number(t, token) != want {
			t.Errorf("%q, %v", token, err)
		}
	}
}

// TestAnswersThatAreNone sends the browser back with answers that must not log anybody in. No
// file is written.
func TestAnswersThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*oidcissuer.Issuer, url.Values)
		want   string
	}{
		"refusal":        {func(_ *oidcissuer.Issuer, v url.Values) { v.Del("code"); v.Set("error", "access_denied\x1b[2J") }, `"access_denied\x1b[2J"`},
		"no code":        {func(_ *oidcissuer.Issuer, v url.Values) { v.Del("code") }, "no code"},
		"unknown code":   {func(_ *oidcissuer.Issuer, v url.Values) { v.Set("code", "guess") }, "invalid_grant"},
		"another issuer": {func(_ *oidcissuer.Issuer, v url.Values) { v.Set("iss", "https://evil.example") }, "another issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			i, at := newIssuer(t)
			i.OnReturn(func(v url.Values) { tc.change(i, v) })
			file := filepath.Join(t.TempDir(), "prod.json")
			_, err := loginBy(t, i, at, file)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("tokens are kept")
			}
		})
	}
}

// TestCodeOfAnotherLogin sends the person's browser back with a code of somebody else's login,
// as an attacker does: neither PKCE nor the nonce lets it in.
func TestCodeOfAnotherLogin(t *testing.T) {
	i, at := newIssuer(t)
	codes := make(chan string, 1)
	other := url.Values{
		"redirect_uri": {"http://127.0.0.1:1/callback"}, "client_id": {oidcissuer.ClientID}, "response_type": {"code"},
		"code_challenge_method": {"S256"}, "code_challenge": {"c"}, "scope": {"openid"}, "state": {"s"},
	}
	i.OnReturn(func(v url.Values) { codes <- v.Get("code") })
	b := browser{i.Client(), t}
	b.open(i.URL + "/authorize?" + other.Encode())
	code := <-codes
	i.OnReturn(func(v url.Values) { v.Set("code", code) })
	if _, err := loginBy(t, i, at, filepath.Join(t.TempDir(), "prod.json")); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("err = %v", err)
	}
}

// TestListenerAnswersOneRequest sends requests that are not the answer of the issuer: they get
// 404 and end nothing, whatever page sends them.
func TestListenerAnswersOneRequest(t *testing.T) {
	i, at := newIssuer(t)
	b, shown := browser{i.Client(), t}, make(chan string, 1)
	ways := oidclogin.Ways{Tell: silent.Tell, Open: func(page string) error {
		asked, err := url.Parse(page)
		if err != nil {
			return err
		}
		back := asked.Query().Get("redirect_uri")
		state := asked.Query().Get("state")
		go func() {
			for _, url := range []string{back, back + "?code=c", back + "?code=c&state=guess", strings.TrimSuffix(back, "/callback") + "/?state=" + state} {
				if code, text := b.open(url); code != http.StatusNotFound || text != "" {
					t.Errorf("%s: %d %q", url, code, text)
				}
			}
			for _, change := range []func(*http.Request){
				func(r *http.Request) { r.Method = http.MethodPost },
				func(r *http.Request) { r.Host = "evil.example" },
			} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, back+"?code=c&state="+state, nil)
				if err != nil {
					t.Error(err)
					continue
				}
				change(r)
				resp, err := b.Do(r)
				if err != nil {
					t.Error(err)
					continue
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusNotFound {
					t.Errorf("%s to %s: %d", r.Method, r.Host, resp.StatusCode)
				}
			}
			_, text := b.open(page)
			shown <- text
		}()
		return nil
	}}
	if err := oidclogin.Login(t.Context(), at, filepath.Join(t.TempDir(), "prod.json"), ways); err != nil {
		t.Error(err)
	}
	if text := <-shown; !strings.Contains(text, "terminal") {
		t.Errorf("the browser shows %q", text)
	}
}

// TestWithoutABrowser checks what happens if no browser can be started, or if the issuer
// offers one way only.
func TestWithoutABrowser(t *testing.T) {
	outside.Slow(t)
	broken := func(string) error { return errors.New("no such command") }
	for name, tc := range map[string]struct {
		without string
		open    func(string) error
		byCode  bool
	}{
		"the browser does not start": {"", broken, true},
		"there is none":              {"", nil, true},
		"the issuer knows no pages":  {"authorization_endpoint", broken, true},
		"the issuer knows no codes":  {"device_authorization_endpoint", broken, false},
		"neither":                    {"device_authorization_endpoint", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			i, at := newIssuer(t)
			i.Without(tc.without)
			b, ended := browser{i.Client(), t}, make(chan struct{})
			ways := oidclogin.Ways{Open: tc.open, Tell: func(page, code string) {
				if (code != "") != tc.byCode {
					t.Errorf("the person is told to open %s with the code %q", page, code)
				}
				go func() { // The person opens it.
					defer close(ended)
					if !tc.byCode {
						b.open(page)
					}
				}()
			}}
			if err := oidclogin.Login(t.Context(), at, filepath.Join(t.TempDir(), "prod.json"), ways); err != nil {
				t.Error(err)
			}
			<-ended
		})
	}
}

// TestLoginEndsWithItsContext checks that nothing waits on after Ctrl-C.
func TestLoginEndsWithItsContext(t *testing.T) {
	_, at := newIssuer(t)
	ctx, stop := context.WithCancel(t.Context())
	ways := oidclogin.Ways{Tell: func(string, string) { stop() }, Open: func(string) error { return nil }}
	if err := oidclogin.Login(ctx, at, filepath.Join(t.TempDir(), "prod.json"), ways); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}
