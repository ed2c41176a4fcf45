package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Peers are the replicas that serve the same store.
type Peers interface {
	// Self is what this replica calls itself.
	Self() string
	// Others are the URLs of all others, by what they call themselves.
	Others(ctx context.Context) (map[string]string, error)
}

// peerTimeout is how long another replica is waited for.
const peerTimeout = 2 * time.Second

// peerClient goes straight to a replica: what the environment says of HTTP proxies
// is for elsewhere.
var peerClient = &http.Client{Transport: &http.Transport{IdleConnTimeout: time.Minute}}

// maxPeerAnswer bounds what another replica says: 50,000 proxies of 1 KiB.
const maxPeerAnswer = 64 << 20

// peerError is another answer than one that can be used.
type peerError struct {
	code int
	text string
}

func (e *peerError) Error() string {
	return fmt.Sprintf("%d %s: %.200s", e.code, http.StatusText(e.code), e.text)
}

// isWithout reports whether a replica says that there is nothing of the name, which
// is another thing than to know nothing of the path.
func (e *peerError) isWithout(name string) bool {
	var status metav1.Status
	return e.code == http.StatusNotFound && json.Unmarshal([]byte(e.text), &status) == nil && status.Details != nil && status.Details.Name == name
}

// askPeer asks a replica for what it knows itself, below a path of elements as they
// are. When that is still what it said under the etag, "" for none, nothing is
// decoded and the etag comes back.
func askPeer(ctx context.Context, base string, path []string, q url.Values, etag string, into any) (newer string, err error) {
	at, err := url.JoinPath(base, path...)
	if err != nil {
		return "", err
	}
	q.Set("local", "true")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"?"+q.Encode(), nil)
	if err != nil {
		return "", err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := peerClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPeerAnswer))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return etag, nil
	case resp.StatusCode != http.StatusOK:
		return "", &peerError{resp.StatusCode, string(body)}
	}
	return resp.Header.Get("ETag"), json.Unmarshal(body, into)
}
