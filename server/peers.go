package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Peers are the replicas that serve the same store.
type Peers interface {
	// Self is what this replica calls itself, as no other one does.
	Self() string
	// Others are all others, with those that are missing.
	Others(ctx context.Context) ([]Replica, error)
	// CutOff is since when this one has been missing to them; false when it is not.
	CutOff() (since time.Time, is bool)
}

// Replica is another one. What is known of it says whether it is Missing, zero for no,
// and since when; it may answer all the same, when only its store is out of its reach.
type Replica struct {
	Name, URL string
	Missing   time.Time
}

// replicaHeader says which replica is meant. Another one at its address does not answer
// in its place.
const replicaHeader = "Pilot-Replica"

// isLocal reads the parameter by which one replica asks another for its own.
func (s *Server) isLocal(r *http.Request, q url.Values) (bool, error) {
	local, err := boolParam(q, "local")
	if err != nil || s.opts.Peers == nil {
		return local, err
	}
	if meant := r.Header.Get(replicaHeader); meant != "" && meant != s.opts.Peers.Self() {
		return false, badRequest("%s: this is replica %s, and not %s", replicaHeader, s.opts.Peers.Self(), meant)
	}
	return local, nil
}

// peerTimeout is how long another replica is waited for.
const peerTimeout = 2 * time.Second

// peerClient goes straight to a replica: what the environment says of HTTP proxies
// is for elsewhere.
var peerClient = &http.Client{Transport: &http.Transport{
	DialContext: (&net.Dialer{Timeout: peerTimeout}).DialContext, IdleConnTimeout: time.Minute,
}}

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

// askOthers asks all other replicas at once. Who does not answer is named in a Warning
// header, with what of it is missing in the answer, and returned.
func (s *Server) askOthers(ctx context.Context, w http.ResponseWriter, what string, ask func(Replica) error) (missing []string) {
	if s.opts.Peers == nil {
		return nil
	}
	others, err := s.opts.Peers.Others(ctx)
	if err != nil {
		s.opts.Log.Warn("the other replicas are not known", "error", err)
		missing = append(missing, "the other replicas are not known at present, their "+what+" are missing here")
	}
	if since, is := s.opts.Peers.CutOff(); is {
		missing = append(missing, "this replica is cut off from the store since "+since.Format(time.TimeOnly))
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, other := range others {
		asked.Go(func() {
			err := ask(other)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				s.opts.Log.Warn("a replica does not tell its "+what, "replica", other.Name, "url", other.URL, "error", err)
				missing = append(missing, other.silence()+", its "+what+" are missing here")
			case !other.Missing.IsZero():
				addWarning(w, "replica "+other.Name+" is cut off from the store since "+other.Missing.Format(time.TimeOnly)+", its proxies keep what they have")
			}
		})
	}
	asked.Wait()
	slices.Sort(missing)
	for _, text := range missing {
		addWarning(w, text)
	}
	return missing
}

// silence is what is known of one that does not answer.
func (r Replica) silence() string {
	if r.Missing.IsZero() {
		return "replica " + r.Name + " does not answer"
	}
	return "replica " + r.Name + " is missing since " + r.Missing.Format(time.TimeOnly) + ", and did not leave"
}

// askPeer asks a replica for what it knows itself, below a path of elements as they
// are. When that is still what it said under the etag, "" for none, nothing is
// decoded and the etag comes back.
func askPeer(ctx context.Context, of Replica, path []string, q url.Values, etag string, into any) (newer string, err error) {
	req, err := peerRequest(ctx, http.MethodGet, of, path, q, nil)
	if err != nil {
		return "", err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	return peerAnswer(req, into)
}

// postPeer has a replica do for itself what it is asked in a text.
func postPeer(ctx context.Context, of Replica, path []string, q url.Values, text []byte, media string, into any) error {
	req, err := peerRequest(ctx, http.MethodPost, of, path, q, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", media)
	_, err = peerAnswer(req, into)
	return err
}

func peerRequest(ctx context.Context, method string, of Replica, path []string, q url.Values, body io.Reader) (*http.Request, error) {
	at, err := url.JoinPath(of.URL, path...)
	if err != nil {
		return nil, err
	}
	local := maps.Clone(q)
	local.Set("local", "true")
	req, err := http.NewRequestWithContext(ctx, method, at+"?"+local.Encode(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(replicaHeader, of.Name)
	return req, nil
}

// peerAnswer is decoded, unless it is still what was said under the etag of the request.
func peerAnswer(req *http.Request, into any) (etag string, err error) {
	resp, err := peerClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPeerAnswer))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusNotModified:
		return req.Header.Get("If-None-Match"), nil
	case resp.StatusCode != http.StatusOK:
		return "", &peerError{resp.StatusCode, string(body)}
	}
	return resp.Header.Get("ETag"), json.Unmarshal(body, into)
}
