package rest

import (
	"net/http"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/wire"
)

// discoveryV1 serves Envoy's v1 REST discovery (Envoy 1.4 to 1.8). These versions
// have no conditional requests and accept only 200.
type discoveryV1 struct {
	discoveryErrors
	server *discovery.Publisher
	stats  *cacheStats
	proofs proofs
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

// ofNode refuses a proxy that may not be the proxy of the node in the path. Every route with a
// node passes it.
func (d discoveryV1) ofNode(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.proofs.admit(r, discovery.Node{ID: wire.PathParam(r, "node")}); err != nil {
			d.write(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
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
		wire.WriteText(w, http.StatusNotFound, "AvailabilityZone "+err.Error())
		return
	}
	wire.WriteText(w, http.StatusOK, zone)
}
