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

	"github.com/pilot-api/pilot-api/server/wire"
)

// Peers are the replicas that serve the same store.
type Peers interface {
	// Self returns the name of this replica, which is unique.
	Self() string
	// Others returns all other replicas, including missing ones.
	Others(ctx context.Context) ([]Replica, error)
	// CutOff reports whether the others see this replica as missing, and since when.
	CutOff() (since time.Time, is bool)
}

// Replica is another replica. Missing is the time since which it has been missing,
// or zero. A missing replica may still answer if only its store is out of its
// reach.
type Replica struct {
	Name, URL string
	Missing   time.Time
}

// replicaHeader names the replica that a request is for. Another replica at its
// address refuses the request.
const replicaHeader = "Pilot-Replica"

// isLocal reads the parameter by which a replica asks another for its own state
// only.
func (s *Server) isLocal(r *http.Request, q url.Values) (bool, error) {
	local, err := wire.BoolParam(q, "local")
	if err != nil || s.opts.Peers == nil {
		return local, err
	}
	if meant := r.Header.Get(replicaHeader); meant != "" && meant != s.opts.Peers.Self() {
		return false, wire.BadRequest("%s: this is replica %s, and not %s", replicaHeader, s.opts.Peers.Self(), meant)
	}
	return local, nil
}

// peerTimeout is how long a request waits for another replica.
const peerTimeout = 2 * time.Second

// peerClient connects directly to a replica. It ignores the HTTP proxies of the
// environment, which are for other destinations.
var peerClient = &http.Client{Transport: &http.Transport{
	DialContext: (&net.Dialer{Timeout: peerTimeout}).DialContext, IdleConnTimeout: time.Minute,
}}

// maxPeerAnswer bounds the answer of another replica, in bytes: 50,000 proxies of 1
// KiB.
const maxPeerAnswer = 64 << 20

// peerError is an answer that cannot be used.
type peerError struct {
	code int
	text string
}

func (e *peerError) Error() string {
	return fmt.Sprintf("%d %s: %.200s", e.code, http.StatusText(e.code), e.text)
}

// isWithout reports whether a replica answers that it has nothing of that name, as
// opposed to not knowing the path.
func (e *peerError) isWithout(name string) bool {
	var status metav1.Status
	return e.code == http.StatusNotFound && json.Unmarshal([]byte(e.text), &status) == nil && status.Details != nil && status.Details.Name == name
}

// askOthers asks all other replicas at once. It returns a text for each that does
// not answer and for what is missing without it, and adds these texts as Warning
// headers.
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

// silence describes a replica that does not answer.
func (r Replica) silence() string {
	if r.Missing.IsZero() {
		return "replica " + r.Name + " does not answer"
	}
	return "replica " + r.Name + " is missing since " + r.Missing.Format(time.TimeOnly) + ", and did not leave"
}

// askPeer asks a replica for its own state at path, whose elements are used
// unescaped. If the answer under etag is still current, it decodes nothing and
// returns etag. etag may be "".
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

// postPeer sends text to a replica, which handles the request for itself only.
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

// peerAnswer sends req and decodes the answer, unless the answer under the
// request's ETag is still current.
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
