package actions

import (
	"net/http"
	"slices"

	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/objects"
	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// Options configure a Handler.
type Options struct {
	Store store.Interface
	// MaxTransaction is the number of operations that Store accepts in one transaction.
	MaxTransaction int
	Reads          store.Reader
	Objects        *objects.API
	Bodies         *intake.Decoder
	// Guard decides what the caller may do. An action needs the rights for each of its
	// operations.
	Guard authz.Guard
}

// Handler answers Transactions and Rollbacks. It is safe for concurrent use.
type Handler struct {
	opts    Options
	objects *objects.API
	bodies  *intake.Decoder
}

// New returns a Handler. It starts nothing.
func New(opts Options) *Handler {
	return &Handler{opts: opts, objects: opts.Objects, bodies: opts.Bodies}
}

// Endpoints returns the endpoints of actions.
func (h *Handler) Endpoints() []openapi.Endpoint {
	post := func(path, kind string, v any, handler wire.Handler, doc string) []openapi.Endpoint {
		shape := openapi.Content{Media: wire.ObjectTypes, Shape: openapi.ActionShape(wire.RegistryVersion, kind, v)}
		return openapi.Of(openapi.GVK(wire.RegistryVersion, kind), openapi.Endpoint{
			Method: http.MethodPost, Path: path, Handler: handler, Params: actionParams, Body: &shape, Success: 201, Answer: shape, Doc: doc,
		})
	}
	return slices.Concat(
		post(transactionsPath, kindTransaction, transaction{}, h.bodies.WithBody(maxTransaction, h.transaction),
			"Performs all operations at one revision, or none of them."),
		post(rollbacksPath, kindRollback, rollback{}, h.bodies.Admitted(intake.Work{Least: rollbackWeight}, h.rollback),
			"Returns an object or a namespace to its state at a revision."),
	)
}

// actionParams are the query parameters of actions.
var actionParams = wire.Params("dryRun", "fieldManager", "fieldValidation")

// writesOf checks the query of an action, and returns the store to write to.
func (h *Handler) writesOf(r *http.Request) (store.Interface, error) {
	q := wire.Query(r)
	if err := wire.CheckParams(q, actionParams); err != nil {
		return nil, err
	}
	if err := objects.CheckFieldValidation(q); err != nil {
		return nil, err
	}
	writes, err := h.objects.WritesOf(q)
	return rightful{writes, h}, err
}
