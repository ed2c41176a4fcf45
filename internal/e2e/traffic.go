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

// Requests is how many requests try a row.
const Requests = 200

// Ask is one request as the front service would send it, to a service of the
// shop.
type Ask struct {
	Service string
	Path    string
	Header  http.Header
}

// asJason is the cookie, or the header, that some rules look for.
func (a Ask) asJason() bool { return a.Header.Get("Cookie") != "" || a.Header.Get("End-User") != "" }

// Answer is what came of it. Echo is of the backend that answered, if one did.
type Answer struct {
	Ask
	Status   int
	Location string
	Took     time.Duration
	Echo     Echo
}

// Traffic is what became of the requests of one row.
type Traffic struct {
	Answers []Answer
	Hits    map[string]int // Requests that reached each backend meanwhile.
	Delays  int            // Delays that Envoy says it injected meanwhile.
}

// count counts the answers that are so.
func (t *Traffic) count(is func(*Answer) bool) int {
	n := 0
	for i := range t.Answers {
		if is(&t.Answers[i]) {
			n++
		}
	}
	return n
}

// tally counts the answers by what they are, such as "v1 96, v3 104".
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

// version is the version that answered, or the status if none did.
func version(a *Answer) string {
	if a.Status != http.StatusOK {
		return status(a)
	}
	return a.Echo.Version
}

func status(a *Answer) string { return fmt.Sprintf("status %d", a.Status) }

// asking is a client that takes redirects for answers.
func asking(by *http.Transport) *http.Client {
	return &http.Client{
		Transport:     by,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}
}

// sendAll asks all, a few at a time, and keeps the order.
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
