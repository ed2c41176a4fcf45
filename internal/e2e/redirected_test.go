package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// redirecting is the server as an Envoy sees it to which no kernel redirects
// connections: its listener for them learns from the PROXY protocol where they
// were going. Everything else passes unchanged, versions too. The Envoy asks over a
// socket, as it asks the server itself.
func redirecting(t *testing.T, pilot *Pilot) *Pilot {
	t.Helper()
	server, err := url.Parse(pilot.URL)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := pilot.socket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "front.sock"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: redirectingAnswers(l.Addr().String()),
		Transport:      pollsOverSocket{overSocket(behind)},
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	local := &http.Server{Handler: proxy}
	go local.Serve(l) // Ends with the test.
	t.Cleanup(func() { local.Close() })
	return &Pilot{&testbed.Server{URL: front.URL, Process: pilot.Process}, pilot.programs}
}

// pollsOverSocket sends polls over the server's socket, which takes nothing else, and all
// other requests over TCP.
type pollsOverSocket struct{ socket http.RoundTripper }

func (p pollsOverSocket) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		return p.socket.RoundTrip(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// redirectingAnswers changes the listeners in the server's answers, and the socket
// that it tells of, which becomes the given one.
func redirectingAnswers(socket string) func(*http.Response) error {
	return func(resp *http.Response) error {
		path := resp.Request.URL.Path
		switch {
		case resp.StatusCode != http.StatusOK:
			return nil
		case strings.HasSuffix(path, ":listeners"):
			return rewrite(resp, byProxyProtocol)
		case strings.HasSuffix(path, ":sockets"):
			return rewrite(resp, func([]byte) ([]byte, error) {
				return json.Marshal(map[string]string{"http": socket})
			})
		}
		return nil
	}
}

// rewrite has the text of a response made anew.
func rewrite(resp *http.Response, anew func([]byte) ([]byte, error)) error {
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if text, err = anew(text); err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	resp.ContentLength = int64(len(text))
	resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

func byProxyProtocol(text []byte) ([]byte, error) {
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	resources, _ := answer["resources"].([]any)
	for _, r := range resources {
		listener := r.(map[string]any)
		if listener["use_original_dst"] != true {
			continue
		}
		filters, _ := listener["listener_filters"].([]any)
		listener["listener_filters"] = append(filters, map[string]any{
			"name":         "envoy.filters.listener.proxy_protocol",
			"typed_config": map[string]any{"@type": "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"},
		})
	}
	return json.Marshal(answer)
}

// dialRedirected connects to the listener of redirected connections at virtual
// with one that was going to an address.
func dialRedirected(ctx context.Context, virtual, address string) (net.Conn, error) {
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", virtual)
	if err == nil {
		_, err = fmt.Fprintf(conn, "PROXY TCP4 127.0.0.1 %s 5555 %s\r\n", ip, port)
	}
	return conn, err
}
