package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// mountDiscovery adds the two polling APIs of Envoy. Errors are plain text for a
// person with curl; to an Envoy any error means that it keeps what it has.
func mountDiscovery(r chi.Router, d *discovery.Publisher, sockets Sockets, log *slog.Logger) {
	v1 := discoveryV1{discoveryErrors{log}, d, newCacheStats()}
	r.Get("/v1/registration", v1.answer(v1.registrations))
	r.Get("/v1/registration/", v1.answer(v1.registrations))
	r.Get("/v1/registration/{key}", v1.answer(v1.endpoints))
	r.Get("/v1/clusters/{cluster}/{node}", v1.answer(v1.clusters))
	r.Get("/v1/listeners/{cluster}/{node}", v1.answer(v1.listeners))
	r.Get("/v1/routes/{table}/{cluster}/{node}", v1.answer(v1.routes))
	r.Get("/v1/az/{cluster}/{node}", v1.zone)
	r.Get("/cache_stats", v1.stats.show)
	r.Post("/cache_stats_delete", v1.stats.reset)

	v3 := discoveryV3{discoveryErrors{log}, d, newPollReader()}
	r.Post("/v3/discovery:clusters", v3.poll(discovery.ClusterType))
	r.Post("/v3/discovery:endpoints", v3.poll(discovery.EndpointType))
	r.Post("/v3/discovery:listeners", v3.poll(discovery.ListenerType))
	r.Post("/v3/discovery:secrets", v3.poll(discovery.SecretType))
	r.Post("/v3/discovery:routes", v3.poll(discovery.RouteType))
	r.Get("/v3/discovery:sockets", sockets.show)
}

// Sockets are the addresses where the server answers the proxies of its own user on
// this machine. Private keys are sent over the sockets.
type Sockets struct {
	// Streams is the HOST:PORT of streams over TCP, or "" for none. A caller compares
	// it to find out whether the socket belongs to the server that it means.
	Streams string `json:"streams,omitempty"`
	// GRPC is the socket file for streams, HTTP the one for everything else; "" means
	// none.
	GRPC string `json:"grpc,omitempty"`
	HTTP string `json:"http,omitempty"`
}

func (s Sockets) show(w http.ResponseWriter, _ *http.Request) {
	text, err := json.Marshal(s)
	if err != nil {
		text = []byte("{}") // Strings always encode.
	}
	writeBody(w, append(text, '\n'))
}

// discoveryV1 serves Envoy's v1 REST discovery (Envoy 1.4 to 1.8). These versions
// have no conditional requests and accept only 200.
type discoveryV1 struct {
	discoveryErrors
	server *discovery.Publisher
	stats  *cacheStats
}

// answer returns a handler that answers with the result of ask. The handler gives
// ask the parameters of the path.
func (d discoveryV1) answer(ask func(part func(string) string) (discovery.Answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := ask(func(name string) string { return wire.PathParam(r, name) })
		if err != nil {
			d.write(w, r, err)
			return
		}
		d.stats.count(r.URL.Path, a.Version)
		writeBody(w, a.Body)
	}
}

func (d discoveryV1) registrations(func(string) string) (discovery.Answer, error) {
	return d.server.V1Registrations()
}

func (d discoveryV1) endpoints(part func(string) string) (discovery.Answer, error) {
	return d.server.V1Endpoints(part("key"))
}

func (d discoveryV1) clusters(part func(string) string) (discovery.Answer, error) {
	return d.server.V1Clusters(part("node"))
}

func (d discoveryV1) listeners(part func(string) string) (discovery.Answer, error) {
	return d.server.V1Listeners(part("node"))
}

func (d discoveryV1) routes(part func(string) string) (discovery.Answer, error) {
	return d.server.V1Routes(part("node"), part("table"))
}

// zone answers as Pilot did: with the bare zone, or with 404 for any failure.
func (d discoveryV1) zone(w http.ResponseWriter, r *http.Request) {
	zone, err := d.server.Zone(wire.PathParam(r, "node"))
	if err != nil {
		writePlain(w, http.StatusNotFound, "AvailabilityZone "+err.Error())
		return
	}
	writePlain(w, http.StatusOK, zone)
}

func writeBody(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	// A client that went away needs no answer.
	_, _ = w.Write(body)
}

// discoveryErrors turns failures of discovery into HTTP statuses, for v1 and v3.
type discoveryErrors struct{ log *slog.Logger }

func (d discoveryErrors) write(w http.ResponseWriter, r *http.Request, err error) {
	status := discoveryStatus(err)
	if status == http.StatusRequestEntityTooLarge {
		err = fmt.Errorf("a poll must not be larger than %d bytes", maxPoll)
	}
	d.log.DebugContext(r.Context(), "discovery refused", "path", r.URL.Path, "status", status, "err", store.Logged(err))
	if errors.Is(err, discovery.ErrOverBudget) {
		w.Header().Set("Retry-After", strconv.Itoa(int(overBudgetRetry.Seconds())))
	}
	text := err.Error()
	if status == http.StatusInternalServerError {
		text = "internal error" // The details go to the log only.
	}
	http.Error(w, text, status)
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
	case errors.Is(err, discovery.ErrWithheld):
		return http.StatusForbidden
	// Pilot answered a bad route name with 503.
	case errors.Is(err, discovery.ErrNotReady), errors.Is(err, discovery.ErrBadRoute):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
