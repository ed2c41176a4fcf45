package server

import (
	"net/http"
	"slices"

	"github.com/pilot-api/pilot-api/server/openapi"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// actionOptions configure an actionHandler.
type actionOptions struct {
	Store store.Interface
	// MaxTransaction is the number of operations that Store accepts in one transaction.
	MaxTransaction int
	Reads          store.Reader
	Objects        *api
	Bodies         *decoder
}

// actionHandler answers Transactions and Rollbacks. It is safe for concurrent use.
type actionHandler struct {
	opts    actionOptions
	objects *api
	bodies  *decoder
}

func newActionHandler(opts actionOptions) *actionHandler {
	return &actionHandler{opts: opts, objects: opts.Objects, bodies: opts.Bodies}
}

// Endpoints returns the endpoints of actions.
func (h *actionHandler) Endpoints() []openapi.Endpoint {
	post := func(path, kind string, v any, handler wire.Handler, doc string) []openapi.Endpoint {
		shape := openapi.Content{Media: wire.ObjectTypes, Shape: openapi.ActionShape(registryVersion, kind, v)}
		return openapi.Of(openapi.GVK(registryVersion, kind), openapi.Endpoint{
			Method: http.MethodPost, Path: path, Handler: handler, Params: actionParams, Body: &shape, Success: 201, Answer: shape, Doc: doc,
		})
	}
	return slices.Concat(
		post(transactionsPath, kindTransaction, transaction{}, h.bodies.withBody(maxTransaction, h.transaction),
			"Performs all operations at one revision, or none of them."),
		post(rollbacksPath, kindRollback, rollback{}, h.bodies.admitted(work{least: rollbackWeight}, h.rollback),
			"Returns an object or a namespace to its state at a revision."),
	)
}

// actionParams are the query parameters of actions.
var actionParams = params("dryRun", "fieldManager", "fieldValidation")
