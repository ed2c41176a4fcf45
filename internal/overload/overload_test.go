// Package overload sends a real pilot-api what costs most, while others use it
// as they always do.
package overload

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/schema"
)

var whole = flag.Bool("whole", false, "send all of the load, which takes minutes")

// load is how much is sent.
type load struct {
	objects, objectBytes int   // in the lists
	lists                int   // at once, in YAML
	posts, postBytes     int   // at once, of short words
	domains              int   // invented
	mostMemory           int64 // that the process may ever have, in MiB
}

func TestOverload(t *testing.T) {
	outside.Slow(t)
	l := load{objects: 8, objectBytes: 250_000, lists: 3, posts: 12, postBytes: 250_000, domains: 200, mostMemory: 700}
	if *whole {
		l = load{objects: 40, objectBytes: 1_000_000, lists: 3, posts: 48, postBytes: 1_000_000, domains: 2000, mostMemory: 1024}
	}
	p := start(t)
	p.post(t, http.StatusCreated, service)
	for i := range l.objects {
		p.post(t, http.StatusCreated, large(i, l.objectBytes))
	}
	before, _ := p.Memory()
	t.Logf("%d MiB before the load", before>>20)

	ctx, stop := context.WithCancel(t.Context())
	honest := make(chan latencies, 1)
	go func() { honest <- p.honest(ctx) }()
	var strangers errgroup.Group
	for range l.lists {
		strangers.Go(p.list)
	}
	// Nearly as many values as a text may have, in so many bytes.
	word := strings.Repeat("b", l.postBytes*9/8/schema.MaxValues) + ","
	words := []byte("kind: RouteRule\napiVersion: config.istio.io/v1alpha2\nmetadata: {name: words}\nspec: {a: [" + strings.Repeat(word, l.postBytes/len(word)-100) + "b]}\n")
	refused := make([]int, l.posts)
	for i := range l.posts {
		strangers.Go(func() (err error) {
			refused[i], err = p.send("POST", rules, words)
			return err
		})
	}
	strangers.Go(func() error { return p.invent(l.domains) })
	if err := strangers.Wait(); err != nil {
		t.Error(err)
	}
	stop()
	served := <-honest

	for _, code := range refused {
		if code != http.StatusUnprocessableEntity && code != http.StatusTooManyRequests {
			t.Errorf("a list of words was answered %d", code)
		}
	}
	if served.failed > 0 || len(served.took) == 0 {
		t.Errorf("of %d honest requests, %d failed: %v", len(served.took), served.failed, served.err)
	}
	_, most := p.Memory()
	if most == 0 {
		outside.Missing(t, "the memory of a process: /proc")
	}
	if most > l.mostMemory<<20 {
		t.Errorf("the process had %d MiB, at most %d are allowed", most>>20, l.mostMemory)
	}
	t.Logf("the process had %d MiB at most; %d honest requests took %v at most, half of them %v or less",
		most>>20, len(served.took), slices.Max(served.took), served.median())
}

const (
	rules   = "/apis/config.istio.io/v1alpha2/namespaces/default/routerules"
	entries = "/apis/networking.istio.io/v1/namespaces/default/serviceentries"
	service = `
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: web}
spec:
  hosts: [web.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.1}]
`
	node = "sidecar~10.1.0.1~web.default~default.svc.cluster.local"
)

// large is an object of about so many bytes, of many small parts.
func large(i, size int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "kind: ServiceEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: large-%d}\nspec:\n", i)
	fmt.Fprintf(&text, "  hosts: [large-%d.example.com]\n  resolution: STATIC\n  ports: [{number: 80, name: http, protocol: HTTP}]\n  endpoints:\n", i)
	const most = 4000
	padding := strings.Repeat("x", 40)
	for n := 0; text.Len() < size && n < most; n++ {
		fmt.Fprintf(&text, "  - {address: 10.%d.%d.%d, labels: {", i, n/250, n%250)
		for label := range max(1, size/most/60) {
			fmt.Fprintf(&text, "a%d: %s, ", label, padding)
		}
		text.WriteString("z: z}}\n")
	}
	return text.String()
}

// program is a pilot-api with an etcd inside.
type program struct{ *testbed.Server }

func start(t *testing.T) program {
	t.Helper()
	return startOn(t, "--data-dir", filepath.Join(t.TempDir(), "data"))
}

// send answers the code, once the whole answer has come.
func (p program) send(method, path string, body []byte, headers ...string) (int, error) {
	req, err := http.NewRequest(method, p.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/yaml")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (p program) post(t *testing.T, want int, text string) {
	t.Helper()
	if code, err := p.send("POST", entries, []byte(text)); err != nil || code != want {
		t.Fatalf("got %d, %v, want %d", code, err, want)
	}
}

// list asks for all that is large.
func (p program) list() error {
	code, err := p.send("GET", entries, nil, "Accept: application/yaml")
	if err != nil || code != http.StatusOK {
		return fmt.Errorf("a list in YAML: %d, %w", code, err)
	}
	return nil
}

// invent asks for the configuration of proxies that there are not.
func (p program) invent(domains int) error {
	for i := range domains {
		code, err := p.send("GET", fmt.Sprintf("/v1/clusters/x/sidecar~10.9.%d.%d~x~domain-%d", i/250, i%250, i), nil)
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("domain %d: %d, %w", i, code, err)
		}
	}
	return nil
}

// latencies are what honest requests took.
type latencies struct {
	took   []time.Duration
	failed int
	err    error
}

func (l latencies) median() time.Duration {
	took := slices.Sorted(slices.Values(l.took))
	return took[len(took)/2]
}

// honest reads, polls and writes five times a second until ctx ends.
func (p program) honest(ctx context.Context) latencies {
	var l latencies
	poll := []byte(`{"node":{"id":"` + node + `"}}`)
	for n := 0; ; n++ {
		for _, r := range []struct {
			method, path string
			body         []byte
		}{
			{"GET", entries + "/web", nil},
			{"POST", "/v3/discovery:clusters", poll},
			{"POST", rules, fmt.Appendf(nil, "kind: RouteRule\napiVersion: config.istio.io/v1alpha2\nmetadata: {name: honest-%d}\nspec: {destination: {name: web}, route: [{labels: {version: v1}}]}\n", n)},
		} {
			begin := time.Now()
			code, err := p.send(r.method, r.path, r.body)
			l.took = append(l.took, time.Since(begin))
			if err != nil || code/100 != 2 {
				l.failed++
				l.err = fmt.Errorf("%s %s: %d, %w", r.method, r.path, code, err)
			}
		}
		select {
		case <-ctx.Done():
			return l
		case <-time.After(200 * time.Millisecond):
		}
	}
}
