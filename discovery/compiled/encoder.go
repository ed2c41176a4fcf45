package compiled

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// Encoder has the state that all views of all generations share: the encoded parts of
// configurations, and the current generation.
type Encoder struct {
	V1 xds.V1Parts
	V3 xds.V3Parts
	// Endpoints has the encoded endpoint sets, by service and key.
	Endpoints cached.Attached[mesh.Service, string, *endpointSet]

	// Advancing is locked while another generation becomes the current one. Hold its read
	// lock while you make something from the current generation.
	Advancing sync.RWMutex
	Current   atomic.Pointer[Generation]

	// MaxProxies bounds the listener lists of a view.
	MaxProxies int
	Log        *slog.Logger
	Contain    xds.Contain
	found      func(*View) // called after a view was encoded in one more version
}

// NewEncoder returns an encoder without a generation. contain turns a panic into an error.
// found is called after a view was encoded in one more version.
func NewEncoder(maxProxies int, log *slog.Logger, contain xds.Contain, found func(*View)) *Encoder {
	e := &Encoder{MaxProxies: maxProxies, Log: log, Contain: contain, found: found}
	e.V1.Contain, e.V3.Contain = contain, contain
	e.Endpoints.Max = maxProxies
	return e
}
