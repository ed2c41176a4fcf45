package status

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
)

// Report has the statuses of objects on one replica: those that its proxies have or refuse.
type Report struct {
	Revision int64 `json:"revision"`           // of its published configuration
	Awaiting bool  `json:"awaiting,omitempty"` // proxies connected before it started
	// Returning are awaited, and it is not known yet which objects concern them.
	Returning int            `json:"returning,omitempty"`
	Objects   []objectReport `json:"objects"`
}

type objectReport struct {
	Object   diag.Ref            `json:"object"`
	Proxies  int                 `json:"proxies"`
	Running  int                 `json:"running"`        // proxies that run the version of that revision
	Away     int                 `json:"away,omitempty"` // of Proxies, lost a short while ago
	Fetched  int                 `json:"fetched,omitempty"`
	Refusals []discovery.Refusal `json:"refusals,omitempty"`
}

// newOwnProbe returns looks at the proxies of this replica.
func newOwnProbe(look func(before *discovery.ObjectStatuses) *discovery.ObjectStatuses, log *slog.Logger) *cachedProbe[discovery.ObjectStatuses] {
	return newCachedProbe("proxies", log, &discovery.ObjectStatuses{}, func(before *discovery.ObjectStatuses, _ time.Time) (*discovery.ObjectStatuses, time.Duration) {
		return look(before), 0
	})
}

// Reporter has the report of this replica. The report is encoded on request if it has
// changed. It is safe for concurrent use.
type Reporter struct {
	own  *cachedProbe[discovery.ObjectStatuses]
	back proxyReturn

	mu       sync.Mutex
	statuses *discovery.ObjectStatuses // that text and etag are made from
	text     []byte
	etag     string
}

// Text returns the report in JSON, and its ETag. The report is at most age old. It may be
// older if computing it takes long, unless age is less than Age.
func (r *Reporter) Text(ctx context.Context, age time.Duration) (text []byte, etag string, err error) {
	of := r.own.within(ctx, age)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.statuses == of {
		return r.text, r.etag, nil
	}
	text, err = json.Marshal(reportOf(of, r.back.due(of.Objects)))
	if err != nil {
		return nil, "", fmt.Errorf("encode report: %w", err)
	}
	hash := sha256.Sum256(text)
	r.statuses, r.text, r.etag = of, text, `"`+hex.EncodeToString(hash[:16])+`"`
	return r.text, r.etag, nil
}

func reportOf(all *discovery.ObjectStatuses, awaiting bool) Report {
	out := Report{Revision: all.Revision, Awaiting: awaiting, Returning: all.Returning, Objects: []objectReport{}}
	for _, o := range all.Objects {
		ref := o.Key().Ref()
		s := all.Of(ref, o.Revision())
		if s.Proxies > 0 || len(s.Refusals) > 0 {
			out.Objects = append(out.Objects, objectReport{ref, s.Proxies, s.Running, s.Away, s.Fetched, s.Refusals})
		}
	}
	return out
}
