package inspect

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/server/wire"
)

// StandingsPath is the path at which replicas ask each other for the statuses of objects on
// their proxies. The path keeps its name, because replicas of different releases use it
// during an upgrade.
const StandingsPath = "/apis/" + wire.RegistryVersion + "/standings"

var standingsParams = wire.Params("local", "maxAge")

// standings answers with the statuses of this replica only; the sum over all
// replicas is in the status of objects. maxAge sets how old they may be; the
// default is status.Age. Where a look takes long they may be older, unless the
// request asks for the current state. Then everything that was written before is compiled
// first, if that is soon.
func (h *Handler) standings(w http.ResponseWriter, r *http.Request) error {
	q := wire.Query(r)
	if err := wire.CheckParams(q, standingsParams); err != nil {
		return err
	}
	local, err := h.isLocal(r, q)
	if err != nil {
		return err
	}
	if !local {
		return wire.BadRequest("local: must be true; the status of an object covers the proxies of all replicas")
	}
	age, err := ageParam(q)
	if err != nil {
		return err
	}
	if age < status.Age {
		h.awaitFor(r.Context(), replica.Timeout/2)
	}
	text, etag, err := h.opts.Reporter.Text(r.Context(), age)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return answer.WriteText(w, http.StatusOK, wire.JSON, text)
}

// awaitFor waits until everything that was written before is compiled, but not for longer
// than the replica that asks can wait. A report has its revision.
func (h *Handler) awaitFor(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = h.AwaitPublished(ctx, newest)
}

// ageParam returns how old an answer may be.
func ageParam(q url.Values) (time.Duration, error) {
	if !q.Has("maxAge") {
		return status.Age, nil
	}
	age, err := time.ParseDuration(q.Get("maxAge"))
	if err != nil || age < 0 {
		return 0, wire.BadParam(q, "maxAge", "a duration like 250ms, or 0s")
	}
	return age, nil
}
