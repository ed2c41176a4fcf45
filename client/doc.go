// Package client is a store.Interface over HTTP. It follows the Kubernetes conventions
// of a pilot-api server and keeps the store's contract across the network: for example,
// errors.Is(err, store.ErrConflict) works on both sides. A store/cache on a Client is a
// program's informer.
//
// New returns a Client, which is safe for concurrent use. Objects are those of package
// schema: Object.Spec is the typed spec, Object.JSON the whole object as text. Create,
// Update, UpdateFunc (which never overwrites the write of another client), Patch and
// Delete write one object. Txn writes several at once. Pages reads long lists. If the
// server is overloaded or has no store, requests are retried as Options.Retries say.
//
// # Stability
//
// The exported API of this package and of store, store/cache, schema and diag keeps its
// meaning within a minor version of the module. Before 1.0.0 a new minor version may
// change it, with a line in the changelog; from then on only a new major version may.
// New methods of Client, new fields of structs and new kinds may come at any time: use
// field names in struct literals, and expect unknown kinds in a switch over kinds. The
// HTTP API is stable for longer: a Client works with servers of its own minor version
// and of the versions before and after it.
//
// # Implementation
//
// A call goes through these files. read.go, pages.go, write.go, patch.go,
// transaction.go, history.go and rollback.go turn the contract into requests; ask.go
// does so for queries outside the contract. request.go sends a request and turns its
// answer into bytes or a store error. retry.go retries it. wire.go decodes objects, and
// listreader.go lists. weight.go bounds what an answer takes in memory. A watch of one
// kind or of all is one stream (stream.go). It holds events until their revision is known
// to be complete (pending.go).
package client
