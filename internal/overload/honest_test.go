package overload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// operation is what honest clients do again and again.
type operation struct {
	name  string
	every time.Duration
	// do is the nth, of which many may be under way.
	do func(n int) error
	// after cleans up when the time was taken; nil for nothing.
	after func(n int) error
}

// measured is what the requests of a kind took.
type measured struct {
	name   string
	took   []time.Duration // of those that did not fail
	failed []error
}

// quantile is the least time that so many percent of the requests did not exceed.
func (m measured) quantile(percent int) time.Duration {
	if len(m.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(m.took))
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(0, rank-1)].Round(10 * time.Microsecond)
}

// measureFor runs all operations for so long. Requests begin by the clock and do not wait
// for each other, as those of clients that do not know of each other.
func measureFor(ctx context.Context, length time.Duration, ops []operation) []measured {
	out := make([]measured, len(ops))
	var all sync.WaitGroup
	for i, op := range ops {
		all.Go(func() { out[i] = op.measure(ctx, length) })
	}
	all.Wait()
	return out
}

func (op operation) measure(ctx context.Context, length time.Duration) measured {
	m := measured{name: op.name}
	var mu sync.Mutex
	var under sync.WaitGroup
	tick := time.NewTicker(op.every)
	defer tick.Stop()
	for n := range int(length / op.every) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return m
		}
		under.Go(func() {
			begin := time.Now()
			err := op.do(n)
			took := time.Since(begin)
			if err == nil && op.after != nil {
				err = op.after(n)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				m.failed = append(m.failed, err)
			} else {
				m.took = append(m.took, took)
			}
		})
	}
	under.Wait()
	return m
}

// honestOperations are what operators and proxies do, in a namespace of which they have
// made a few objects.
func (p program) honestOperations(t *testing.T) []operation {
	t.Helper()
	const written = 20
	rule := func(n int) []byte {
		return fmt.Appendf(nil, "kind: RouteRule\napiVersion: config.istio.io/v1alpha2\nmetadata: {name: honest-%d}\nspec: {destination: {name: web}, precedence: %d, route: [{labels: {version: v1}}]}\n", n%written, n)
	}
	p.post(t, http.StatusCreated, service)
	for n := range written {
		if code, err := p.send("POST", rules, rule(n)); err != nil || code != http.StatusCreated {
			t.Fatalf("a rule was answered %d, %v", code, err)
		}
	}
	follower := p.attach(t)
	change := func(n int) string { return fmt.Sprintf("change-%d", n) }
	poller := &poller{program: p}
	return []operation{
		{name: "get", every: 50 * time.Millisecond, do: func(int) error { return p.want(http.StatusOK, "GET", entries+"/web", nil) }},
		{name: "list", every: 100 * time.Millisecond, do: func(int) error { return p.want(http.StatusOK, "GET", rules, nil) }},
		{name: "write", every: 100 * time.Millisecond, do: func(n int) error {
			return p.want(http.StatusOK, "PUT", fmt.Sprintf("%s/honest-%d", rules, n%written), rule(n))
		}},
		{name: "first poll", every: 100 * time.Millisecond, do: func(n int) error {
			return p.want(http.StatusOK, "POST", listeners, pollOf(fmt.Sprintf("sidecar~10.2.%d.%d~web.default~default.svc.cluster.local", n/250%250, n%250+1), ""))
		}},
		{name: "poll", every: 100 * time.Millisecond, do: poller.poll},
		{name: "change", every: 500 * time.Millisecond, do: func(n int) error {
			text := strings.NewReplacer("name: web", "name: "+change(n), "web.default", change(n)+".default").Replace(service)
			if err := p.want(http.StatusCreated, "POST", entries, []byte(text)); err != nil {
				return err
			}
			return follower.await(change(n))
		}, after: func(n int) error { return p.want(http.StatusOK, "DELETE", entries+"/"+change(n), nil) }},
	}
}

// listeners is where a proxy polls for listeners.
const listeners = "/v3/discovery:listeners"

// pollOf returns a poll of a proxy that has a version, or nothing yet.
func pollOf(node, version string) []byte {
	return fmt.Appendf(nil, `{"node":{"id":%q},"version_info":%q}`, node, version)
}

// poller polls as an Envoy does that runs: one poll after the other, each with the version
// of the last answer. A poll that has to wait for the one before counts from its time.
type poller struct {
	program

	mu      sync.Mutex
	version string // of the last answer
}

func (p *poller) poll(int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	resp, err := http.Post(p.URL+listeners, "application/json", bytes.NewReader(pollOf(node, p.version)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotModified && p.version != "":
		return nil
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %.200s", listeners, resp.Status, text)
	}
	var answer struct {
		Version string `json:"version_info"`
	}
	err = json.Unmarshal(text, &answer)
	p.version = answer.Version
	return err
}

// want sends a request that must be answered so.
func (p program) want(code int, method, path string, body []byte) error {
	got, err := p.send(method, path, body)
	if err == nil && got != code {
		err = fmt.Errorf("%s %s: got %d, want %d", method, path, got, code)
	}
	return err
}
