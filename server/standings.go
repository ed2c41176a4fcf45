package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/wire"
)

// standingsPath is where replicas ask each other for the statuses of objects on
// their proxies.
const standingsPath = "/apis/" + registryVersion + "/standings"

// standings are the statuses on one replica, of the objects that its proxies have
// or refuse.
type standings struct {
	Revision int64      `json:"revision"`           // of its published configuration
	Awaiting bool       `json:"awaiting,omitempty"` // proxies connected before it started
	Objects  []standing `json:"objects"`
}

type standing struct {
	Object   diag.Ref            `json:"object"`
	Proxies  int                 `json:"proxies"`
	Running  int                 `json:"running"` // proxies that run the version of that revision
	Refusals []discovery.Refusal `json:"refusals,omitempty"`
}

// newStandings are looks at the proxies of this replica.
func newStandings(look func(before *discovery.ObjectStatuses) *discovery.ObjectStatuses, log *slog.Logger) *lookout[discovery.ObjectStatuses] {
	return newLookout("proxies", log, &discovery.ObjectStatuses{}, func(before *discovery.ObjectStatuses, _ time.Time) (*discovery.ObjectStatuses, time.Duration) {
		return look(before), 0
	})
}

// ownStandings are the statuses of this replica as text. The text is encoded on
// request if they have changed.
type ownStandings struct {
	*lookout[discovery.ObjectStatuses]
	back proxyReturn

	mu   sync.Mutex
	of   *discovery.ObjectStatuses
	text []byte
	etag string
}

// told returns statuses of at most an age. Where a look takes long they may be
// older, as within allows.
func (o *ownStandings) told(ctx context.Context, age time.Duration) (text []byte, etag string, err error) {
	of := o.within(ctx, age)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == of {
		return o.text, o.etag, nil
	}
	text, err = json.Marshal(toldStandings(of, o.back.due(of.Objects)))
	if err != nil {
		return nil, "", fmt.Errorf("encode standings: %w", err)
	}
	hash := sha256.Sum256(text)
	o.of, o.text, o.etag = of, text, `"`+hex.EncodeToString(hash[:16])+`"`
	return o.text, o.etag, nil
}

func toldStandings(all *discovery.ObjectStatuses, awaiting bool) standings {
	out := standings{Revision: all.Revision, Awaiting: awaiting, Objects: []standing{}}
	for _, o := range all.Objects {
		ref := o.Key().Ref()
		s := all.Of(ref, o.Revision())
		if s.Proxies > 0 || len(s.Refusals) > 0 {
			out.Objects = append(out.Objects, standing{ref, s.Proxies, s.Running, s.Refusals})
		}
	}
	return out
}

var standingsParams = params("local", "maxAge")

// standings answers with the statuses of this replica only; the sum over all
// replicas is in the status of objects. maxAge sets how old they may be; the
// default is statusAge. Where a look takes long they may be older, unless the
// request asks for the current state.
func (s *Server) standings(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if err := wire.CheckParams(q, standingsParams); err != nil {
		return err
	}
	local, err := s.isLocal(r, q)
	if err != nil {
		return err
	}
	if !local {
		return wire.BadRequest("local: must be true; how an object stands with the proxies of all replicas is its status")
	}
	age, err := ageParam(q)
	if err != nil {
		return err
	}
	text, etag, err := s.own.told(r.Context(), age)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeText(w, http.StatusOK, wire.JSON, text)
}

// ageParam returns how old an answer may be.
func ageParam(q url.Values) (time.Duration, error) {
	if !q.Has("maxAge") {
		return statusAge, nil
	}
	age, err := time.ParseDuration(q.Get("maxAge"))
	if err != nil || age < 0 {
		return 0, wire.BadParam(q, "maxAge", "a duration like 250ms, or 0s")
	}
	return age, nil
}
