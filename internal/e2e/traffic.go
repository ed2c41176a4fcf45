package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Requests is the number of requests for a row.
const Requests = 200

// Ask is one request from the front service to a service of the shop.
type Ask struct {
	Service string
	Path    string
	Header  http.Header
}

// asJason reports whether the request has the cookie or header that some rules look for.
func (a Ask) asJason() bool { return a.Header.Get("Cookie") != "" || a.Header.Get("End-User") != "" }

// Answer is the result of a request. Echo is from the backend that answered, if any did.
type Answer struct {
	Ask
	Status   int
	Location string
	Took     time.Duration
	Echo     Echo
}

// Traffic is the results of the requests of one row.
type Traffic struct {
	Answers []Answer
	Hits    map[string]int // Requests that reached each backend meanwhile.
	Delays  int            // Delays that Envoy reports to have injected meanwhile.
}

// count counts the answers for which is holds.
func (t *Traffic) count(is func(*Answer) bool) int {
	n := 0
	for i := range t.Answers {
		if is(&t.Answers[i]) {
			n++
		}
	}
	return n
}

// tally counts the answers by category, such as "v1 96, v3 104".
func (t *Traffic) tally(what func(*Answer) string) string {
	counts := map[string]int{}
	for i := range t.Answers {
		counts[what(&t.Answers[i])]++
	}
	return listing(counts)
}

func listing(counts map[string]int) string {
	var parts []string
	for what, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// version returns the version that answered, or the status if none did.
func version(a *Answer) string {
	if a.Status != http.StatusOK {
		return status(a)
	}
	return a.Echo.Version
}

func status(a *Answer) string { return fmt.Sprintf("status %d", a.Status) }

// asking returns a client that does not follow redirects.
func asking(by *http.Transport) *http.Client {
	return &http.Client{
		Transport:     by,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}
}

// sendAll sends all requests, atOnce at a time, and returns the answers in order.
func sendAll(ctx context.Context, client *http.Client, asks []Ask, atOnce int) ([]Answer, error) {
	answers := make([]Answer, len(asks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, ask := range asks {
		group.Go(func() (err error) {
			answers[i], err = ask.send(ctx, client)
			return err
		})
	}
	return answers, group.Wait()
}

func (a Ask) send(ctx context.Context, client *http.Client) (Answer, error) {
	target := "http://" + a.Service + ".default.svc.cluster.local:9080" + a.Path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return Answer{}, err
	}
	maps.Copy(req.Header, a.Header)
	begin := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	answer := Answer{Ask: a, Status: resp.StatusCode, Location: resp.Header.Get("Location"), Took: time.Since(begin)}
	if err == nil && resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, &answer.Echo)
	}
	return answer, err
}
