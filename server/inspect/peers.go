package inspect

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// isLocal reads the parameter by which a replica asks another for its own state
// only.
func (h *Handler) isLocal(r *http.Request, q url.Values) (bool, error) {
	local, err := wire.BoolParam(q, "local")
	if err != nil || h.opts.Peers == nil {
		return local, err
	}
	if meant := r.Header.Get(replica.Header); meant != "" && meant != h.opts.Peers.Self() {
		return false, wire.BadRequest("%s: this is replica %s, and not %s", replica.Header, h.opts.Peers.Self(), meant)
	}
	return local, nil
}

// askOthers asks all other replicas at once. It returns a text for each that does
// not answer and for what is missing without it, and adds these texts as Warning
// headers.
func (h *Handler) askOthers(ctx context.Context, w http.ResponseWriter, what string, ask func(replica.Replica) error) (missing []string) {
	if h.opts.Peers == nil {
		return nil
	}
	others, err := h.others(ctx)
	if err != nil {
		h.opts.Log.Warn("the other replicas are not known", "error", err)
		missing = append(missing, "the other replicas are not known at present, their "+what+" are missing here")
	}
	if since, is := h.opts.Peers.CutOff(); is {
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
				h.opts.Log.Warn("a replica does not tell its "+what, "replica", other.Name, "url", other.URL, "error", err)
				missing = append(missing, other.Silence()+", its "+what+" are missing here")
			case !other.Missing.IsZero():
				wire.AddWarning(w, "replica "+other.Name+" is cut off from the store since "+other.Missing.Format(time.TimeOnly)+", its proxies keep what they have")
			}
		})
	}
	asked.Wait()
	slices.Sort(missing)
	for _, text := range missing {
		wire.AddWarning(w, text)
	}
	return missing
}

// registerPatience is how long a request waits for the register of replicas while the
// store, which has it, does not answer.
const registerPatience = 500 * time.Millisecond

func (h *Handler) others(ctx context.Context) ([]replica.Replica, error) {
	if _, out := store.OutageOf(h.opts.Reads); out {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, registerPatience)
		defer cancel()
	}
	return h.opts.Peers.Others(ctx)
}
