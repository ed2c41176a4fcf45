package rest

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// discoveryErrors turns failures of discovery into HTTP statuses, for v1 and v3.
type discoveryErrors struct{ log *slog.Logger }

func (d discoveryErrors) write(w http.ResponseWriter, r *http.Request, err error) {
	if apierrors.IsTooManyRequests(err) {
		Refuse(w, err)
		return
	}
	status := discoveryStatus(err)
	if status == http.StatusRequestEntityTooLarge {
		err = fmt.Errorf("a poll must not be larger than %d bytes", maxPoll)
	}
	d.log.DebugContext(r.Context(), "discovery refused",
		"path", wire.Short(r.URL.Path, wire.MostLogged), "status", status, "err", wire.Short(store.Logged(err).String(), wire.MostLogged))
	if errors.Is(err, discovery.ErrOverBudget) {
		w.Header().Set("Retry-After", strconv.Itoa(int(overBudgetRetry.Seconds())))
	}
	text := err.Error()
	if status == http.StatusInternalServerError {
		text = "internal error" // The details go to the log only.
	}
	http.Error(w, text, status)
}

// Refuse answers a poll for which the server has no time with 429.
func Refuse(w http.ResponseWriter, err error) {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	http.Error(w, err.Error(), http.StatusTooManyRequests)
}

// overBudgetRetry is the Retry-After for a proxy that was refused for lack of room.
const overBudgetRetry = 30 * time.Second

func discoveryStatus(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	if _, ok := errors.AsType[*badPollError](err); ok || errors.Is(err, discovery.ErrBadType) {
		return http.StatusBadRequest
	}
	if apierrors.IsUnsupportedMediaType(err) {
		return http.StatusUnsupportedMediaType
	}
	switch {
	case errors.Is(err, discovery.ErrBadNode):
		return http.StatusNotFound
	case errors.Is(err, discovery.ErrWithheld), isForbidden(err):
		return http.StatusForbidden
	// Pilot answered a bad route name with 503.
	case errors.Is(err, discovery.ErrNotReady), errors.Is(err, discovery.ErrBadRoute):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
