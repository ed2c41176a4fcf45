package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
)

// standingsPath is where replicas ask each other how objects stand with their proxies.
const standingsPath = "/apis/registry.istio.io/v1/standings"

// standings are those of one replica: of the objects that its proxies have or refuse.
type standings struct {
	Revision int64      `json:"revision"` // of its published configuration
	Objects  []standing `json:"objects"`
}

type standing struct {
	Object   diag.Ref            `json:"object"`
	Proxies  int                 `json:"proxies"`
	Running  int                 `json:"running"` // the version of that revision
	Refusals []discovery.Refusal `json:"refusals,omitempty"`
}

// ownStandings are this replica's as a text, as of a moment ago.
type ownStandings struct {
	look func() *discovery.Standings

	mu     sync.Mutex
	looked time.Time
	text   []byte
	etag   string
}

func (o *ownStandings) answer() (text []byte, etag string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text != nil && time.Since(o.looked) < statusAge {
		return o.text, o.etag, nil
	}
	text, err = json.Marshal(toldStandings(o.look()))
	if err != nil {
		return nil, "", fmt.Errorf("encode standings: %w", err)
	}
	hash := sha256.Sum256(text)
	o.text, o.etag, o.looked = text, `"`+hex.EncodeToString(hash[:16])+`"`, time.Now()
	return o.text, o.etag, nil
}

func toldStandings(all *discovery.Standings) standings {
	out := standings{Revision: all.Revision, Objects: []standing{}}
	for _, o := range all.Objects {
		ref := o.Key().Ref()
		s := all.Of(ref, o.Revision())
		if s.Proxies > 0 || len(s.Refusals) > 0 {
			out.Objects = append(out.Objects, standing{ref, s.Proxies, s.Running, s.Refusals})
		}
	}
	return out
}

var standingsParams = params("local")

// standings answers with this replica's, which is all that it may be asked for: what
// all of them say together is in the status of objects.
func (s *Server) standings(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if err := checkParams(q, standingsParams); err != nil {
		return err
	}
	if local, err := boolParam(q, "local"); err != nil || !local {
		return badRequest("local: must be true; how an object stands with the proxies of all replicas is its status")
	}
	text, etag, err := s.own.answer()
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeText(w, http.StatusOK, formatJSON, text)
}
