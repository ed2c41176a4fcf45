package server

import (
	"context"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// apiOptions configure an API.
type apiOptions struct {
	Store store.Interface
	// MaxTransaction is the number of operations that Store accepts in one transaction.
	MaxTransaction int
	Reads          store.Reader
	// RevisionTimeout bounds the wait of a read for the revision that it asks for.
	RevisionTimeout time.Duration
	// Check returns warnings about objects that are written; nil for none.
	Check      func(context.Context, discovery.Written) (found diag.List, complete bool)
	Statuses   *statuses
	Bodies     *decoder
	LargeReads *largeReads
	Pacer      *pacer
}

// api answers reads and writes of objects. It is safe for concurrent use.
type api struct {
	opts       apiOptions
	bodies     *decoder
	largeReads *largeReads
	kept       keptLists // lists that are requested again
}

func newAPI(opts apiOptions) *api {
	a := &api{opts: opts, bodies: opts.Bodies, largeReads: opts.LargeReads}
	a.kept.turn = opts.Pacer.turnOfList
	return a
}

// resource answers the URLs of one kind in one version.
type resource struct {
	*api
	*shown
}

// of returns the resource of a kind in a version.
func (a *api) of(kind *schema.Kind, version string) *resource {
	return &resource{a, newShown(a.opts.Statuses, kind, version)}
}
