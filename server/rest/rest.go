// Package rest answers Envoys that poll. Package discovery has the answers.
//
//	v3.go         polls of REST discovery v3: the answer, or 304 if the Envoy has it
//	v1.go         polls of REST discovery v1
//	poll.go       the body of a v3 poll, decoded
//	splitpoll.go  the same, split without decoding the node
//	node.go       the node of a poll: the proxy that polls
//	nodehash.go   hash by which known nodes are recognized
//	cachestats.go /cache_stats: counts of the answers to v1 polls
//	private.go    limits of the sockets for Envoys of this machine
//	sockets.go    addresses of these sockets
//	failure.go    HTTP codes of failures
//	proof.go      proofs of the proxies that poll
package rest

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/proxyauth"
)

// Mount adds the two polling APIs of Envoy. Errors are plain text for people with curl. An
// Envoy keeps its configuration on any error.
//
// proxies verifies the proxies that poll, except on private listeners. Nil trusts the
// statements of nodes.
func Mount(r chi.Router, d *discovery.Publisher, sockets Sockets, proxies *proxyauth.Prover, log *slog.Logger) {
	prove := proofs{proxies, d}
	r.Use(prove.proved)
	v1 := discoveryV1{discoveryErrors{log}, d, newCacheStats(), prove}
	r.Get("/v1/registration", v1.answer(v1.registrations))
	r.Get("/v1/registration/", v1.answer(v1.registrations))
	r.Get("/v1/registration/{key}", v1.answer(v1.endpoints))
	r.Group(func(r chi.Router) {
		r.Use(v1.ofNode)
		r.Get("/v1/clusters/{cluster}/{node}", v1.answer(v1.clusters))
		r.Get("/v1/listeners/{cluster}/{node}", v1.answer(v1.listeners))
		r.Get("/v1/routes/{table}/{cluster}/{node}", v1.answer(v1.routes))
		r.Get("/v1/az/{cluster}/{node}", v1.zone)
	})
	r.Get("/cache_stats", v1.stats.show)
	r.Post("/cache_stats_delete", v1.stats.reset)

	v3 := discoveryV3{discoveryErrors{log}, d, newPollReader(), prove}
	r.Post("/v3/discovery:clusters", v3.poll(discovery.ClusterType))
	r.Post("/v3/discovery:endpoints", v3.poll(discovery.EndpointType))
	r.Post("/v3/discovery:listeners", v3.poll(discovery.ListenerType))
	r.Post("/v3/discovery:secrets", v3.poll(discovery.SecretType))
	r.Post("/v3/discovery:routes", v3.poll(discovery.RouteType))
	r.Get(socketsPath, sockets.show)
}

// socketsPath names the sockets of this server. Anybody may ask.
const socketsPath = "/v3/discovery:sockets"

// IsPoll reports whether a path is one of Mount.
func IsPoll(path string) bool {
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v3/") || strings.HasPrefix(path, "/cache_stats")
}

func writeBody(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	// A client that went away needs no answer.
	_, _ = w.Write(body)
}
