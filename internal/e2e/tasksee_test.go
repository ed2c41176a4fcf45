package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// hanging asks a backend for no answer at all.
var hanging = http.Header{Hang: {"yes"}}

func seeTimeout(t *testing.T, w *taskWorld) {
	ask := func(i int) Ask {
		ask := Ask{Service: "details", Path: "/"}
		if i%2 == 0 {
			ask.Header = hanging
		}
		return ask
	}
	rowSeen(ask, func(traffic *Traffic) (string, string) {
		return traffic.tally(status), traffic.all("504 for who gets no answer", func(a *Answer) bool {
			return (a.Status == http.StatusGatewayTimeout) == (a.Header.Get(Hang) != "") && (ok(a) || a.Header.Get(Hang) != "")
		})
	})(t, w)
}

// seeOverload: one request is under way, one waits, and the third is turned
// away, until the first two are given up.
func seeOverload(t *testing.T, w *taskWorld) {
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for i, gauge := range []string{"upstream_rq_active$", "upstream_rq_pending_active$"} {
		go func() {
			_, err := Ask{Service: "ratings", Path: "/", Header: hanging}.send(ctx, w.client)
			ended <- err
		}()
		w.counts(t, `cluster\.out\.ratings\..*\.`+gauge, 1)
		if t.Failed() {
			t.Fatalf("request %d", i)
		}
	}
	third, err := get("ratings")(0).send(t.Context(), w.client)
	if err != nil || third.Status != http.StatusServiceUnavailable {
		t.Errorf("the third request: %d, %v; want 503", third.Status, err)
	}
	giveUp()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a request without an answer: %v", err)
		}
	}
	if err := w.quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := get("ratings")(0).send(t.Context(), w.client)
	if err != nil || !ok(&again) {
		t.Errorf("afterwards: %d, %v", again.Status, err)
	}
}

// counts returns when a gauge of the sidecar has the value.
func (w *taskWorld) counts(t *testing.T, pattern string, want int) {
	t.Helper()
	err := until(t.Context(), fmt.Sprintf("%s to be %d", pattern, want), w.Sidecar.Process, func(ctx context.Context) error {
		n, err := w.Sidecar.Counter(ctx, pattern)
		if err == nil && n != want {
			err = fmt.Errorf("it is %d", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// seeEjection: who fails once answers nobody afterwards.
func seeEjection(t *testing.T, w *taskWorld) {
	before := w.Shop.Hits()
	failed, err := Ask{Service: "reviews", Path: "/", Header: http.Header{FailFirst: {"ejected"}}}.send(t.Context(), w.client)
	if err != nil || failed.Status != http.StatusServiceUnavailable {
		t.Fatalf("%d, %v; want 503", failed.Status, err)
	}
	var left []string
	for _, v := range []string{"v1", "v2", "v3"} {
		if name := Backend("reviews", v); w.Shop.Hits()[name] == before[name] {
			left = append(left, v)
		}
	}
	if len(left) != 2 {
		t.Fatalf("hits before %v, after %v", before, w.Shop.Hits())
	}
	w.counts(t, "outlier_detection.ejections_active$", 1)
	rowSeen(get("reviews"), shares(map[string]float64{left[0]: .5, left[1]: .5}))(t, w)
}

// seeFailover: who is closest answers all until it fails, and then the next zone.
func seeFailover(t *testing.T, w *taskWorld) {
	rowSeen(get("critics"), always("v1"))(t, w)
	failed, err := Ask{Service: "critics", Path: "/", Header: http.Header{FailFirst: {"zone"}}}.send(t.Context(), w.client)
	if err != nil || failed.Status != http.StatusServiceUnavailable {
		t.Fatalf("%d, %v; want 503", failed.Status, err)
	}
	w.counts(t, `cluster\.out\.critics\..*outlier_detection\.ejections_active$`, 1)
	rowSeen(get("critics"), always("v2"))(t, w)
}

// copied holds when v1 answers all and v3 has as many copies.
func copied(lo, hi int) func(*Traffic) (did, wrong string) {
	return func(traffic *Traffic) (did, wrong string) {
		copies := traffic.Hits[Backend("reviews", "v3")]
		did = fmt.Sprintf("%s; v3 saw %d", traffic.tally(version), copies)
		if copies < lo || copies > hi {
			wrong = fmt.Sprintf("%d copies, want %d to %d", copies, lo, hi)
		}
		return did, firstOf(wrong, traffic.all("from v1", from("v1")))
	}
}

func seeTwoHosts(t *testing.T, w *taskWorld) {
	for url, want := range map[string]Echo{
		"http://shop.example.com/":           {"productpage", "v1", "/"},
		"http://shop.example.com/products/1": {"productpage", "v1", "/products/1"},
		"http://api.example.com/ratings/5":   {"ratings", "v1", "/5"},
	} {
		w.inward(t, httpEdge, question{url: url}).from(t, want)
	}
	reviews := w.inward(t, httpEdge, question{url: "http://api.example.com/reviews/7"})
	reviews.from(t, Echo{"reviews", reviews.echo.Version, "/7"})
	for _, url := range []string{"http://shop.example.com/ratings/5", "http://api.example.com/", "http://other.example.com/"} {
		w.inward(t, httpEdge, question{url: url}).has(t, http.StatusNotFound)
	}
}

const shop = "https://shop.example.com/"

// seeSimple: the certificate is of the authority and for the host, or Go would
// not ask.
func seeSimple(t *testing.T, w *taskWorld) {
	w.inward(t, tlsEdge, question{url: shop}).from(t, Echo{"productpage", "v1", "/"})
}

func seeMutual(t *testing.T, w *taskWorld) {
	w.inward(t, tlsEdge, question{url: shop}).refused(t)
	w.inward(t, tlsEdge, question{url: shop, client: "reader.example.com"}).from(t, Echo{"productpage", "v1", "/"})
}

// seeTold: what is told follows the files of the server.
func seeTold(t *testing.T, w *taskWorld) {
	seeSimple(t, w)
	before := w.shownAtEdge(t)
	w.authority.Issue(t, "shop.example.com")
	err := until(t.Context(), "the new certificate", w.router.Process, func(context.Context) error {
		if now := w.shownAtEdge(t); now == before {
			return fmt.Errorf("%s is shown still", now)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seeSimple(t, w)
}

// shownAtEdge is the number of the certificate that the router shows for the shop.
func (w *taskWorld) shownAtEdge(t *testing.T) string {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(w.authority.Certificate)
	d := tls.Dialer{Config: &tls.Config{ServerName: "shop.example.com", RootCAs: roots}}
	conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", w.here.Replace(tlsEdge)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
}

const (
	library = "http://library.example.com/"
	// elsewhereAt is where an application believes a host to be that has a
	// ServiceEntry; nobody is there.
	elsewhereAt = "203.0.113.1:80"
)

func seeLibrary(t *testing.T, w *taskWorld) {
	w.outward(t, question{url: library, to: elsewhereAt}).from(t, Echo{"library", "plain", "/"})
	w.outward(t, question{url: "http://other.example.com/", to: "127.0.0.71:80"}).has(t, http.StatusBadGateway)
}

func seeOrigination(how string) func(*testing.T, *taskWorld) {
	return func(t *testing.T, w *taskWorld) {
		w.outward(t, question{url: library, to: elsewhereAt}).from(t, Echo{"library", how, "/"})
	}
}

func seeNothingSent(t *testing.T, w *taskWorld) {
	before := w.Shop.Hits()
	w.outward(t, question{url: library, to: elsewhereAt}).has(t, http.StatusServiceUnavailable)
	for backend, n := range w.Shop.Hits() {
		if n != before[backend] {
			t.Errorf("%s had %d requests", backend, n-before[backend])
		}
	}
}

// seeTill connects to the till as often as rows ask, and counts who greets.
func seeTill(parts map[string]float64) func(*testing.T, *taskWorld) {
	return func(t *testing.T, w *taskWorld) {
		greeted := map[string]int{}
		for range Requests {
			conn, err := dialRedirected(t.Context(), w.moved.Replace("127.0.0.1:15001"), "203.0.113.1:9000")
			if err != nil {
				t.Fatal(err)
			}
			greeting, err := io.ReadAll(conn)
			if conn.Close(); err != nil {
				t.Fatal(err)
			}
			greeted[strings.TrimSpace(string(greeting))]++
		}
		t.Log(listing(greeted))
		sum := 0
		for version, part := range parts {
			sum += greeted[version]
			if part == 1 {
				continue // The sum tells.
			}
			if lo, hi := bounds(Requests, part); greeted[version] < lo || greeted[version] > hi {
				t.Errorf("%s greets %d times, want %d to %d", version, greeted[version], lo, hi)
			}
		}
		if sum != Requests {
			t.Errorf("greeted by %v, want only %v", greeted, parts)
		}
	}
}

// seePrinter: the printer's own certificate is shown, as it lets in by its name.
func seePrinter(t *testing.T, w *taskWorld) {
	w.inward(t, tlsEdge, question{url: "https://printer.example.com/"}).from(t, Echo{"printer", "TLS for printer.example.com", "/"})
	w.inward(t, tlsEdge, question{url: shop}).refused(t)
}

// seeTwoCertificates: each host shows its own, or Go would not ask.
func seeTwoCertificates(t *testing.T, w *taskWorld) {
	w.inward(t, tlsEdge, question{url: shop}).from(t, Echo{"productpage", "v1", "/"})
	w.inward(t, tlsEdge, question{url: "https://api.example.com/"}).refused(t)
	w.inward(t, tlsEdge, question{url: "https://api.example.com/", client: "reader.example.com"}).from(t, Echo{"ratings", "v1", "/"})
}

// seeWiki: each host is reached where the application found it.
func seeWiki(t *testing.T, w *taskWorld) {
	for host, at := range map[string]string{"en.wiki.example.com": "127.0.0.81:8443", "de.wiki.example.com": "127.0.0.82:8443"} {
		w.outward(t, question{url: "https://" + host + ":8443/", to: at}).from(t, Echo{host, "TLS for " + host, "/"})
	}
	w.outward(t, question{url: "https://wiki.example.org:8443/", to: "127.0.0.83:8443"}).refused(t)
}

// seeNothingAllowed has the gateway refuse everything.
func seeNothingAllowed(t *testing.T, w *taskWorld) {
	for _, url := range []string{"http://shop.example.com/", "http://shop.example.com/products/1"} {
		w.inward(t, httpEdge, question{url: url}).has(t, http.StatusForbidden)
	}
}

func seeProductsAllowed(t *testing.T, w *taskWorld) {
	w.inward(t, httpEdge, question{url: "http://shop.example.com/products/1"}).from(t, Echo{"productpage", "v1", "/products/1"})
	w.inward(t, httpEdge, question{url: "http://shop.example.com/products/1", method: http.MethodDelete}).has(t, http.StatusForbidden)
	w.inward(t, httpEdge, question{url: "http://shop.example.com/"}).has(t, http.StatusForbidden)
}

// demoToken returns the header with the token that the task shows.
func (w *taskWorld) demoToken(t *testing.T) http.Header {
	t.Helper()
	text, err := os.ReadFile(w.taskFile("jwt-at-the-gateway", "1-verified"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "# TOKEN=")
	token, _, _ := strings.Cut(rest, "\n")
	return http.Header{"Authorization": {"Bearer " + token}}
}

func seeTokenVerified(t *testing.T, w *taskWorld) {
	const page = "http://shop.example.com/"
	w.inward(t, httpEdge, question{url: page}).from(t, Echo{"productpage", "v1", "/"})
	w.inward(t, httpEdge, question{url: page, header: w.demoToken(t)}).from(t, Echo{"productpage", "v1", "/"})
	w.inward(t, httpEdge, question{url: page, header: http.Header{"Authorization": {"Bearer x"}}}).has(t, http.StatusUnauthorized)
}

func seeTokenRequired(t *testing.T, w *taskWorld) {
	const product = "http://shop.example.com/products/1"
	w.inward(t, httpEdge, question{url: product}).has(t, http.StatusForbidden)
	w.inward(t, httpEdge, question{url: product, header: w.demoToken(t)}).from(t, Echo{"productpage", "v1", "/products/1"})
	w.inward(t, httpEdge, question{url: "http://shop.example.com/"}).from(t, Echo{"productpage", "v1", "/"})
}
