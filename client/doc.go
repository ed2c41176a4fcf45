// Package client is a store.Interface over HTTP: it speaks the Kubernetes
// conventions of a pilot-api server and keeps the store's contract on the far
// side of the network, so that errors.Is(err, store.ErrConflict) holds here as
// it does there. store/cache over a Client is a program's informer.
//
// A Client is made with New, and is safe for concurrent use. Objects are those of
// package schema: Object.Spec is the typed spec, Object.JSON the whole as text.
// Writes of one object: Create, Update, UpdateFunc, which loses no write of
// somebody else, Patch, Delete; of many at once: Txn. Long lists are read by Pages.
// What is not done because the server has too much to do, or no store, is tried again
// as Options.Retries say.
//
// # Stability
//
// What this package and the packages store, store/cache, schema and diag export
// keeps its meaning within a minor version of the module. Before 1.0.0 a new minor
// version may change it, with a line in the changelog; from then on only a new
// major version may. New methods of Client, new fields of structs and new kinds may
// come at any time: make structs with field names, and expect that a switch over
// kinds meets one that it does not know. The HTTP API that is spoken keeps its
// meaning longer: a Client works with servers of its own minor version and of the
// one before and after.
//
// # How it is made
//
// The way of a call: read.go, pages.go, write.go, patch.go, transaction.go,
// history.go and rollback.go turn the contract into requests, ask.go questions beside
// it; request.go sends one and turns its answer into bytes or a store error, retry.go sends it again;
// wire.go turns bytes into objects. A watch, of one kind or of all, is one stream
// (stream.go), which holds what came until its revision is known to be complete
// (pending.go).
package client
