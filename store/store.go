// Package store defines the contract of a store of config objects. Its implementations
// are store/etcd on etcd, store/memory in memory, and client over HTTP. store/storetest
// is the contract as a test suite. store/cache follows any implementation and answers
// reads from memory.
//
// The package also holds the parts that implementations share. Op.Evaluate applies the
// rules of a write. Index is a sorted set of objects. ChangeLog is a bounded history of
// changes with watches over it. Strict validates objects and calls before they reach a
// store. ToStatus and FromStatus encode and decode errors for the wire.
//
// All objects share one clock. Every change has a revision, an int64 that only grows.
// One transaction is one revision. An object's resourceVersion is the revision that
// last changed it, in decimal.
package store

import (
	"context"

	"github.com/pilot-api/pilot-api/schema"
)

// Scope selects objects for List and Watch. The zero Scope selects everything.
type Scope struct {
	// Kind selects one kind; nil means all kinds. Namespace selects one namespace; ""
	// means all. Name selects one object and requires both Kind and Namespace.
	Kind      *schema.Kind
	Namespace string
	Name      string
}

// Contains reports whether an object with key k is in scope.
func (s Scope) Contains(k schema.Key) bool {
	return (s.Kind == nil || s.Kind.Kind == k.Kind) &&
		(s.Namespace == "" || s.Namespace == k.Namespace) &&
		(s.Name == "" || s.Name == k.Name)
}

// ReadOptions set how fresh the answer of a Get must be. The zero value is linearizable:
// the answer reflects every write acknowledged before the call began.
type ReadOptions struct {
	// AtLeast accepts an answer that reflects at least this revision. The call waits for
	// that revision if necessary, as long as the context allows. 0 means linearizable. Any
	// accepts any available state.
	AtLeast int64
}

// Any, as ReadOptions.AtLeast or ListOptions.AtLeast, accepts any available state, however
// old.
const Any int64 = -1

// ListOptions set how fresh a List must be, as ReadOptions do, or pin its revision.
type ListOptions struct {
	AtLeast int64
	// Exact lists the state at exactly this revision; 0 means not pinned. The error is
	// ErrExpired if the revision was compacted, and ErrFuture if it is not reached yet.
	// Exact and AtLeast must not be used together.
	Exact int64
	// Limit is the maximum number of objects in the list; 0 means no limit. After skips all
	// keys up to and including that key, in list order. An object with that key need not
	// exist. After and AtLeast must not be used together. To get a list in pages, request
	// all of them at one Exact revision, each after the last object of the page before.
	Limit int
	After schema.Key
}

// List is a consistent set of objects. Items are sorted as Compare does: by kind (in
// the order of schema.Kinds), namespace and name.
type List struct {
	// Revision is the revision that the list reflects. A Watch from it misses nothing
	// and repeats nothing.
	Revision int64
	Items    []*schema.Object
	// Remaining is the number of objects in scope that Limit left out after the last item,
	// unreadable ones included. It is -1 if some may have been left out but not counted. A
	// list without items is the last page.
	Remaining int
	// Unreadable are the stored values in scope that cannot be read and therefore are
	// not in Items.
	Unreadable []Unreadable
}

// Reader is the read side of a store. All methods are safe for concurrent use. The
// returned objects are shared and immutable.
type Reader interface {
	// Get returns ErrNotFound if there is no such object, and ErrUnreadable if the
	// value stored under the key cannot be read.
	Get(ctx context.Context, key schema.Key, opts ReadOptions) (*schema.Object, error)
	// List returns an empty list, not an error, if there are no objects.
	List(ctx context.Context, scope Scope, opts ListOptions) (*List, error)
	// Watch delivers every change in scope with a revision greater than after, in order
	// and exactly once, until ctx ends or the watch fails. If after is 0, the watch
	// starts now. ErrExpired, returned by the call or by the Watcher's Err, means that
	// changes after that revision are no longer kept: list again and watch from the
	// list's revision. ErrFuture means that after is beyond the store's revision.
	Watch(ctx context.Context, scope Scope, after int64) (Watcher, error)
	// Revision returns the newest revision of the store. It is linearizable: it is not
	// older than any write acknowledged before the call began. A watch of everything
	// reaches this revision through changes alone.
	Revision(ctx context.Context) (int64, error)
}

// Rewinder is a Reader that knows how far back it can be read.
type Rewinder interface {
	// Rewind returns the oldest revision, not older than to, from which lists
	// (ListOptions.Exact) and watches can start. The revision may be compacted before
	// they start; they then return ErrExpired.
	Rewind(ctx context.Context, to int64) (int64, error)
}

// Timekeeper is a Reader that may know its revision without asking other processes.
type Timekeeper interface {
	// Now returns Revision immediately. ok is false if other processes must be asked.
	Now(ctx context.Context) (revision int64, ok bool)
}

// Counter is a Reader that can count objects without reading them.
type Counter interface {
	// Count returns the number of stored objects, unreadable ones included, and the
	// revision of that count. The revision is linearizable, like Revision.
	Count(ctx context.Context) (count int, revision int64, err error)
}

// Repeater is a Reader that can return the changes of one revision again.
type Repeater interface {
	// Repeat returns the changes in scope of a revision from which a watch may resume.
	// The error is ErrExpired if they are no longer kept. The slice is shared.
	Repeat(scope Scope, revision int64) ([]Event, error)
}

// Interface is a complete store.
type Interface interface {
	Reader
	Historian

	// Create stores a new object and returns it with resourceVersion, uid,
	// creationTimestamp and generation 1 set. Values that obj gives for these fields
	// and for its deletion are ignored, except that a resourceVersion is ErrInvalid.
	// The error is ErrExists if the key is taken.
	Create(ctx context.Context, obj *schema.Object) (*schema.Object, error)

	// Update replaces an object. If obj has a resourceVersion, it must equal the stored
	// one, else the error is ErrConflict. Without one the update is unconditional. The
	// error is ErrNotFound if there is no such object. The uid, creationTimestamp and
	// deletion fields stay as stored; a different uid is ErrConflict. The generation
	// grows by one if the spec changed. An update that changes nothing writes nothing
	// and returns the stored object.
	//
	// An object that is being deleted accepts no new finalizers (ErrInvalid). An update
	// that removes its last finalizer removes the object. It returns the object as
	// given, with the revision of the deletion as its resourceVersion.
	Update(ctx context.Context, obj *schema.Object) (*schema.Object, error)

	// UpdateFunc is Update with the object that change returns for the stored object. The
	// result is written only if that object is still the stored one. If another writer was
	// faster, change is called again with the newer object, until ctx ends. So no write is
	// lost, and no write fails because another one came first. If change sets a
	// resourceVersion, it must be the stored one, else the error is ErrConflict. An error
	// of change is returned unchanged. change must be quick, may be called any number of
	// times, and must not use the store.
	UpdateFunc(ctx context.Context, key schema.Key, change Change) (*schema.Object, error)

	// Delete removes an object if it meets the preconditions. It returns the last state
	// of the object, with the revision of the deletion as its resourceVersion. The
	// error is ErrNotFound, or ErrConflict for a failed precondition.
	//
	// An object with finalizers is only marked: it gets a deletionTimestamp and is
	// returned in that state. The update that removes its last finalizer removes it.
	// Deleting a marked object again changes nothing.
	Delete(ctx context.Context, key schema.Key, pre Preconditions) (*schema.Object, error)

	// Txn does all operations at one revision, or none. The first operation that fails
	// determines the error, which names its index (Error.Index). Two operations on one
	// key are ErrInvalid. The results are in the order of ops. A transaction has at
	// most MaxTxnOps operations. A store may accept fewer; it then returns ErrTooLarge,
	// which states the limit, before it reads anything.
	Txn(ctx context.Context, ops []Op) ([]*schema.Object, error)
}

// MaxTxnOps is the maximum number of operations in one transaction of any store.
const MaxTxnOps = 10_000

// Preconditions guard a delete. Empty fields are not checked.
type Preconditions struct {
	UID             string
	ResourceVersion string
}

// Verb is the kind of write that an Op does.
type Verb string

const (
	OpCreate Verb = "create"
	OpUpdate Verb = "update"
	OpDelete Verb = "delete"
	// OpApply updates the stored object, or creates one if there is none. It does not
	// create an object if its resourceVersion (ErrNotFound) or uid (ErrConflict) refers to
	// an earlier one. An apply by function gets nil if there is no object, and sets the
	// field owners (metadata.managedFields) itself. If the object was ever applied by
	// function, the author of any other write owns the fields that the write changes.
	OpApply Verb = "apply"
)

// Change returns the next state of an object, given the stored one. The stored object
// is shared and must not be changed.
type Change func(stored *schema.Object) (*schema.Object, error)

// Op is one operation of a transaction. Create, update and apply use Object. Delete
// uses Key and Pre. An update or apply by function uses Key and Change instead of
// Object. The rules are those of the single methods.
type Op struct {
	Verb   Verb
	Object *schema.Object
	Key    schema.Key
	Pre    Preconditions
	Change Change
	// Until makes each condition on a resourceVersion hold for every version from that of
	// the stored object to this one, because readers got later versions with later
	// statuses. 0 allows only the version of the stored object.
	Until int64
}

// Target returns the key that the operation works on.
func (o Op) Target() schema.Key {
	if o.Object != nil {
		return o.Object.Key()
	}
	return o.Key
}

// EventType says what happened to an object.
type EventType string

const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// A watch over HTTP also sends these frames. A bookmark states that all changes up to a
// revision were sent. An error states why the watch ends.
const (
	BookmarkFrame = "BOOKMARK"
	ErrorFrame    = "ERROR"
)

// Event is one change. Object is the new state or, for Deleted, the last state with the
// revision of the deletion as its resourceVersion. Previous is the state before a
// Modified or Deleted event if the store knows it, else nil.
type Event struct {
	Type     EventType
	Object   *schema.Object
	Previous *schema.Object
}

// Batch holds all changes in scope of one or more whole revisions, in order. A transaction
// is never split. A Batch without events states only that the watcher has received
// everything up to Revision.
type Batch struct {
	Revision int64
	Events   []Event
	// Readings are the values in scope that became unreadable, or readable again, in order.
	// A store that never loses a value has none.
	Readings []Reading
	// Statuses is set for a status revision. Such a batch is of this revision alone and has
	// no events. Only a StatusKeeper sends it, and only to watches of everything.
	Statuses *StatusRevision
}

// Watcher is a running watch. It ends with the context passed to Watch.
type Watcher interface {
	// Batches is closed when the watch ends. An implementation bounds what it keeps for
	// a reader. It ends the watch of a reader that falls too far behind, with ErrSlow
	// as Err: list or watch again from the last revision received.
	Batches() <-chan Batch
	// Err returns why Batches was closed. It is nil until then, and ctx's error if the
	// context ended.
	Err() error
	// RequestProgress asks for a Batch, possibly empty, as soon as the watch has
	// delivered everything up to the store's present revision. It does not wait.
	RequestProgress(ctx context.Context) error
}

// Puller is a Watcher that one goroutine can read without a second goroutine. It suits
// thousands of watches that mostly wait. A watch is read either by Pull or by Batches,
// not by both.
type Puller interface {
	Watcher
	// Ready has a token while Pull may return a batch. Pull removes the token when there is
	// none, and the next new batch adds one. Ready is never closed. Pull reports the end of
	// the watch as an error; the end of its context adds no token.
	Ready() <-chan struct{}
	// Pull returns the next batch, as Batches would deliver it, if one is available now.
	// Its error is that of Err.
	Pull() (b Batch, some bool, err error)
}
