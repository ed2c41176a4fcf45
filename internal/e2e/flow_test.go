package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// flow is requests that go on whatever happens, and what came of them. Each
// failure that no rule asks for is kept.
type flow struct {
	mu       sync.Mutex
	during   string         // what is being done to the world
	asked    map[string]int // by service: the status that a rule asks for at present
	sent     int
	versions []reached // of reviews, the latest
	failures []string
	total    map[string]int // by service and status
	done     sync.WaitGroup
}

// reached is which version of a service a request had, and how many were sent before it.
type reached struct {
	version string
	number  int
}

// flowPace is the time between two requests of one client.
const flowPace = 2 * time.Millisecond

// lookBack is how many answers tell where requests go.
const lookBack = 24

// begin sends requests until ctx ends: a client that keeps its connections, and one
// that has a new one for each request.
func (f *flow) begin(ctx context.Context, proxy string) {
	f.asked, f.total = map[string]int{}, map[string]int{}
	for _, alone := range []bool{false, true} {
		client := asking(&http.Transport{
			Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}),
			DisableKeepAlives: alone,
		})
		f.done.Go(func() {
			defer client.CloseIdleConnections()
			f.send(ctx, client)
		})
	}
}

func (f *flow) send(ctx context.Context, client *http.Client) {
	pace := time.NewTicker(flowPace)
	defer pace.Stop()
	services := []string{"reviews", "details", "reviews", "ratings", "reviews", "productpage"}
	for i := 0; ctx.Err() == nil; i++ {
		service := services[i%len(services)]
		number, asked := f.start(service)
		// What was begun is finished.
		answer, err := get(service)(i).send(context.WithoutCancel(ctx), client)
		f.note(service, number, asked, answer, err)
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
}

func (f *flow) start(service string) (number, asked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	return f.sent, f.asked[service]
}

func (f *flow) note(service string, number, asked int, answer Answer, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total[fmt.Sprintf("%s %d", service, answer.Status)]++
	switch {
	case err != nil:
		f.failures = append(f.failures, fmt.Sprintf("while %s: %s: %v", f.during, service, err))
	case answer.Status == http.StatusOK && answer.Echo.Service == service:
		if service == "reviews" {
			f.versions = append(f.versions, reached{answer.Echo.Version, number})
			f.versions = f.versions[max(0, len(f.versions)-lookBack):]
		}
	// A rule that comes or goes may be live before, or longer than, we know.
	case answer.Status != asked && answer.Status != f.asked[service]:
		f.failures = append(f.failures, fmt.Sprintf("while %s: %s answers %d, request %d", f.during, service, answer.Status, number))
	}
}

// now says what is being done to the world.
func (f *flow) now(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.during = what
}

// asks says that a rule wants requests to a service to fail so, 0 for no more.
func (f *flow) asks(service string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[service] = status
}

// mark is a point in the flow.
func (f *flow) mark() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// reaches is an error unless the last requests, all sent after the mark, reached
// just these versions of reviews.
func (f *flow) reaches(mark int, versions ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[string]bool{}
	for _, a := range f.versions {
		seen[a.version] = true
	}
	got := slices.Sorted(maps.Keys(seen))
	if len(f.versions) < lookBack || f.versions[0].number <= mark || !slices.Equal(got, versions) {
		return fmt.Errorf("requests reach %v, want %v", got, versions)
	}
	return nil
}

// count is how many requests to a service were answered so.
func (f *flow) count(service string, status int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total[fmt.Sprintf("%s %d", service, status)]
}

// failed tells the failures that no rule asked for, and whether there were any.
func (f *flow) failed() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	few := f.failures[:min(len(f.failures), 20)]
	return fmt.Sprintf("%d of %d requests:\n%s", len(f.failures), f.sent, strings.Join(few, "\n")), len(f.failures) > 0
}
