package jwks

import (
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// goodKeys is a key set as PublicKeys writes it.
const goodKeys = `{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

// endpoint is a server whose answer tests change.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  int
}

func (e *endpoint) set(answer http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func (e *endpoint) times() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func startEndpoint(t *testing.T, answer http.HandlerFunc) (e *endpoint, caFile string) {
	t.Helper()
	e = &endpoint{answer: answer}
	e.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.asked++
		answer := e.answer
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return e, caFile
}

var loopback = []string{"127.0.0.0/8"}

func startFetcher(t *testing.T, o Options) *Fetcher {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return f
}

// await returns the state of a source as soon as it fits.
func await(t *testing.T, f *Fetcher, source Source, fits func(State) bool) State {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		changed, state := f.Changed(), f.States()[source]
		if fits(state) {
			return state
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("it is %+v still", state)
		}
	}
}

func tried(s State) bool { return s != State{} }

// TestFetch tries endpoints of all kinds. No problem has text of an answer.
func TestFetch(t *testing.T) {
	e, caFile := startEndpoint(t, nil)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	plain := httptest.NewServer(says(goodKeys))
	t.Cleanup(plain.Close)
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf(`{"kty":"OKP","kid":"%d"}`, i))
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	hang := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	}
	discovery := func(issuer, uri string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case discoveryPath:
				fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, issuer, uri)
			case "/keys":
				fmt.Fprint(w, goodKeys)
			default:
				http.NotFound(w, r)
			}
		}
	}
	for _, c := range []struct {
		name      string
		source    Source
		answer    http.HandlerFunc
		addresses []string
		problem   string // "" for the good keys
	}{
		{"good", Source{URI: e.URL + "/keys"}, says(goodKeys), loopback, ""},
		{"good in plain text", Source{URI: plain.URL}, nil, loopback, ""},
		{"hangs", Source{URI: e.URL}, hang, loopback, "does not answer in time"},
		{"never ends", Source{URI: e.URL}, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"keys":[`)
			w.(http.Flusher).Flush()
			hang(w, r)
		}, loopback, "does not end its answer in time"},
		{"breaks off", Source{URI: e.URL}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, goodKeys)
		}, loopback, "breaks off its answer"},
		{"fails", Source{URI: e.URL}, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", 500) }, loopback, "answers 500"},
		{"redirects", Source{URI: e.URL}, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) }, loopback, "answers 302"},
		{"lies", Source{URI: e.URL}, says("<html>secret</html>"), loopback, "is no JSON Web Key Set"},
		{"no keys", Source{URI: e.URL}, says(`{"keys":[]}`), loopback, "no public key"},
		{"10,000 keys", Source{URI: e.URL}, says(`{"keys":[` + strings.Join(many, ",") + `]}`), loopback, "answers more than 65536 bytes"},
		{"100 keys", Source{URI: e.URL}, says(`{"keys":[` + strings.Join(many[:100], ",") + `]}`), loopback, "has 100 keys"},
		{"symmetric", Source{URI: e.URL}, says(`{"keys":[{"kty":"oct","k":"secret"}]}`), loopback, "symmetric"},
		{"without end", Source{URI: e.URL}, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, loopback, "answers more than 65536 bytes"},
		{"nobody there", Source{URI: "https://" + closed.Addr().String()}, nil, loopback, "cannot be reached"},
		{"no such host", Source{URI: "https://nobody.invalid/keys"}, nil, loopback, ""},
		{"this machine", Source{URI: e.URL}, says(goodKeys), nil, "is not one from which keys are fetched"},
		{"this machine by name", Source{URI: strings.Replace(e.URL, "127.0.0.1", "localhost", 1)}, says(goodKeys), nil, "is not one from which keys are fetched"},
		{"this machine by no address and a zone", Source{URI: "http://[::%25lo]:" + plain.URL[strings.LastIndex(plain.URL, ":")+1:]}, nil, nil, "is not one from which keys are fetched"},
		{"another block", Source{URI: e.URL}, says(goodKeys), []string{"192.0.2.0/24"}, "is not one from which keys are fetched"},
		{"discovery", Source{Issuer: e.URL}, discovery(e.URL, e.URL+"/keys"), loopback, ""},
		{"discovery for another issuer", Source{Issuer: e.URL}, discovery("https://other.example", e.URL+"/keys"), loopback, "does not say that it is for this issuer"},
		{"discovery with keys in plain text", Source{Issuer: e.URL}, discovery(e.URL, plain.URL), loopback, "names no https URL"},
		{"discovery with a file", Source{Issuer: e.URL}, discovery(e.URL, "file:///etc/passwd"), loopback, "names no https URL"},
		{"discovery with a lost page", Source{Issuer: e.URL}, discovery(e.URL, e.URL+"/lost"), loopback, "/lost answers 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.source.URI, "invalid") {
				c.problem = "cannot be reached"
			}
			if c.answer != nil {
				e.set(c.answer)
			}
			f := startFetcher(t, Options{Addresses: c.addresses, CAFile: caFile})
			patience := 10 * time.Second
			if strings.Contains(c.problem, "in time") {
				patience = 100 * time.Millisecond
			}
			f.Want(map[Source]time.Duration{c.source: patience})
			f.Tried(t.Context())
			state := f.States()[c.source]
			if c.problem == "" && state != (State{Keys: goodKeys}) {
				t.Errorf("%+v", state)
			}
			if c.problem != "" && (state.Keys != "" || !strings.Contains(state.Problem, c.problem)) {
				t.Errorf("%+v, want %q", state, c.problem)
			}
			if strings.Contains(state.Problem, "secret") {
				t.Errorf("the problem has a part of the answer: %s", state.Problem)
			}
		})
	}
}

// TestLastGoodKeysStay has an endpoint fail and recover.
func TestLastGoodKeysStay(t *testing.T) {
	e, caFile := startEndpoint(t, says(goodKeys))
	f := startFetcher(t, Options{Addresses: loopback, CAFile: caFile, Refresh: time.Millisecond, Retry: time.Millisecond})
	source := Source{URI: e.URL}
	f.Want(map[Source]time.Duration{source: 10 * time.Second})
	await(t, f, source, func(s State) bool { return s == State{Keys: goodKeys} })
	e.set(says("no keys"))
	if state := await(t, f, source, func(s State) bool { return s.Problem != "" }); state.Keys != goodKeys {
		t.Errorf("%+v", state)
	}
	other := strings.Replace(goodKeys, `"a"`, `"b"`, 1)
	e.set(says(other))
	await(t, f, source, func(s State) bool { return s == State{Keys: other} })
}

// TestOldKeysAreDropped has an endpoint that fails for longer than keys are good.
func TestOldKeysAreDropped(t *testing.T) {
	e, caFile := startEndpoint(t, says(goodKeys))
	f := startFetcher(t, Options{Addresses: loopback, CAFile: caFile, Refresh: time.Millisecond, Retry: time.Millisecond, Keep: 500 * time.Millisecond})
	source := Source{URI: e.URL}
	f.Want(map[Source]time.Duration{source: 10 * time.Second})
	await(t, f, source, func(s State) bool { return s.Keys == goodKeys })
	e.set(says("no keys"))
	await(t, f, source, func(s State) bool { return s.Keys == "" && s.Problem != "" })
}

// TestWanted has sources that come and go. One that hangs does not hold up others.
func TestWanted(t *testing.T) {
	e, caFile := startEndpoint(t, says(goodKeys))
	slow, _ := startEndpoint(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	f := startFetcher(t, Options{Addresses: loopback, CAFile: caFile})
	hanging, source := Source{URI: slow.URL}, Source{URI: e.URL}
	f.Want(map[Source]time.Duration{hanging: time.Hour, source: time.Hour})
	await(t, f, source, tried)
	if state := f.States()[hanging]; tried(state) {
		t.Errorf("%+v", state)
	}
	f.Want(map[Source]time.Duration{source: time.Hour})
	if states := f.States(); len(states) != 1 || states[source].Keys != goodKeys {
		t.Errorf("%+v", states)
	}
	f.Want(nil)
	f.Want(map[Source]time.Duration{source: time.Hour})
	await(t, f, source, tried)
	if times := e.times(); times != 2 {
		t.Errorf("asked %d times, want once whenever it is wanted anew", times)
	}
}

func TestAllowed(t *testing.T) {
	for address, want := range map[string]bool{
		"192.0.2.1": true, "10.0.0.1": true, "172.16.0.1": true, "2001:db8::1": true, "fd12::1": true,
		"127.0.0.1": false, "127.9.9.9": false, "0.0.0.0": false, "169.254.169.254": false, "169.254.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"100.100.100.200": false, "168.63.129.16": false, "fd00:ec2::254": false,
		"::1": false, "::": false, "fe80::1": false, "ff02::1": false, "::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::127.0.0.1": false,
		"::%lo": false, "::1%lo": false, "::127.0.0.1%lo": false, "::ffff:127.0.0.1%lo": false, "fe80::1%eth0": false, "fd00:ec2::254%eth0": false, "2001:db8::1%eth0": true,
	} {
		if got := allowed(netip.MustParseAddr(address), nil); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if address := netip.MustParsePrefix(a.String()).Addr(); allowed(address, nil) || allowed(address.WithZone("lo"), nil) {
			t.Errorf("%s is an address of this machine", address)
		}
	}
	if _, err := New(Options{Addresses: []string{"x"}}); err == nil {
		t.Error("a block that is none is accepted")
	}
	if _, err := New(Options{CAFile: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that is not there is accepted")
	}
}
