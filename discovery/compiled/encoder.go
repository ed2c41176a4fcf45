package compiled

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// Encoder is what all views of all generations share: the encoded parts of
// configurations, and which generation is current.
type Encoder struct {
	V1 xds.V1Parts
	V3 xds.V3Parts
	// Endpoints are encoded sets, by service and key.
	Endpoints cached.Attached[mesh.Service, string, *endpointSet]

	// Advancing is locked to make another generation the current one. It is read-locked to
	// make something that follows the current one.
	Advancing sync.RWMutex
	Current   atomic.Pointer[Generation]

	// MaxProxies bounds the listener lists of a view.
	MaxProxies int
	Log        *slog.Logger
	Contain    xds.Contain
	found      func(*View) // takes note that a view was encoded in one more version
}

// NewEncoder returns an encoder without a generation. contain turns a panic into an
// error; found is called after a view was encoded in one more version.
func NewEncoder(maxProxies int, log *slog.Logger, contain xds.Contain, found func(*View)) *Encoder {
	e := &Encoder{MaxProxies: maxProxies, Log: log, Contain: contain, found: found}
	e.V1.Contain, e.V3.Contain = contain, contain
	e.Endpoints.Max = maxProxies
	return e
}
