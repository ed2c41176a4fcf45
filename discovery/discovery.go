// Package discovery keeps the answers for proxies ready. It follows the config
// objects, waits for a burst of changes to end, compiles once per view (see
// mesh.View) and publishes the encoded result in one step; requests only look
// up. It knows nothing of HTTP: package server asks it.
//
//	objects ─▶ hold-off ─▶ mesh.Snapshot ─▶ compile ─▶ ir ─▶ envoy/v1, v3 ─▶ check ─▶ publish
package discovery

import (
	"context"
	"errors"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Source is where the config objects come from; store/cache is one.
type Source interface {
	// Snapshot returns every object at one revision, in no particular
	// order; ok is false until the source has synced once. The slice is the
	// caller's, the objects are shared.
	Snapshot() (objs []*schema.Object, revision int64, ok bool)
	// Changed is closed at the next change after the call.
	Changed() <-chan struct{}
}

// Failures that a server tells apart.
var (
	// ErrNotReady: no snapshot has been compiled yet; an Envoy must keep
	// what it has and ask again.
	ErrNotReady = errors.New("no configuration compiled yet")
	// ErrBadNode: the node identity is malformed.
	ErrBadNode = errors.New("bad node")
	// ErrBadRoute: an RDS name that is neither a port nor http_proxy.
	ErrBadRoute = errors.New("bad route name")
	// ErrBadType: a v3 type URL that is not served.
	ErrBadType = errors.New("unknown resource type")
)

// Answer is an encoded answer and the content hash that is its version. Both
// are shared and must not be changed.
type Answer struct {
	Version string
	Body    []byte
}

// Server holds the published configuration. Its methods are safe for
// concurrent use.
type Server struct{}

// Run follows the source until ctx ends.
func (s *Server) Run(ctx context.Context) error { panic("not written yet") }

// Ready tells whether a first complete snapshot has been published.
func (s *Server) Ready() bool { panic("not written yet") }

// Revision is the store revision of the published snapshot, 0 before Ready.
func (s *Server) Revision() int64 { panic("not written yet") }

// V1Clusters, V1Listeners, V1Routes and V1Endpoints answer Envoy's v1 REST
// API. V1Endpoints needs no node: the answer is the same for every proxy.
func (s *Server) V1Clusters(node string) (Answer, error)        { panic("not written yet") }
func (s *Server) V1Listeners(node string) (Answer, error)       { panic("not written yet") }
func (s *Server) V1Routes(node, table string) (Answer, error)   { panic("not written yet") }
func (s *Server) V1Endpoints(serviceKey string) (Answer, error) { panic("not written yet") }

// V3 answers one v3 poll with an encoded DiscoveryResponse in proto JSON, all
// resources of the type when names is empty, else exactly those named that
// exist.
func (s *Server) V3(typeURL, node string, names []string) (Answer, error) {
	panic("not written yet")
}

// Problems is everything that the published configuration could not honour,
// sorted by object.
func (s *Server) Problems() diag.List { panic("not written yet") }
