package objects

import (
	"context"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/gate"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/store"
)

// Options configure an API.
type Options struct {
	Store store.Interface
	// MaxTransaction is the number of operations that Store accepts in one transaction.
	MaxTransaction int
	Reads          store.Reader
	// AwaitPublished waits until the configuration of objects as fresh as atLeast has been
	// compiled; nil if nothing is compiled.
	AwaitPublished func(ctx context.Context, atLeast int64) error
	// RevisionTimeout bounds the wait of a read for the revision that it asks for.
	RevisionTimeout time.Duration
	// Check returns warnings about written objects, or objects that a dry run would write,
	// in the context of all other objects. Nil means no warnings.
	Check      func(ctx context.Context, changes []schema.Change, dryRun bool) diag.List
	Statuses   *render.Statuses
	Bodies     *intake.Decoder
	LargeReads *answer.LargeReads
	Pacer      *answer.Pacer
	// Guard decides what callers may do in a request with several objects.
	Guard authz.Guard
	// Gate refuses writes that callers may not do, although they may write the kind. Nil
	// refuses none.
	Gate *gate.Gate
}

// API answers reads and writes of objects. It is safe for concurrent use.
type API struct {
	opts       Options
	bodies     *intake.Decoder
	largeReads *answer.LargeReads
	kept       keptLists // lists that are requested again
}

// New returns an API. It starts nothing.
func New(opts Options) *API {
	a := &API{opts: opts, bodies: opts.Bodies, largeReads: opts.LargeReads}
	a.kept.turn = opts.Pacer.TurnOfList
	return a
}

// resource answers the URLs of one kind in one version.
type resource struct {
	*API
	*render.Resource
}

// of returns the resource of a kind in a version.
func (a *API) of(kind *schema.Kind, version string) *resource {
	return &resource{a, render.New(a.opts.Statuses, kind, version)}
}
