// Package store says what a store of config objects promises. The packages
// below it keep those promises: store/etcd on etcd, store/memory in memory,
// and client over HTTP; store/storetest is the contract as a runnable suite.
// store/cache follows any of them and answers reads from memory.
//
// What implementations share is here as well: Op.Evaluate is the rules of a write,
// Index a sorted set of objects, ChangeLog a bounded past with watches over it.
// Strict is the door that checks what comes in, ToStatus and FromStatus are
// errors as they go over the wire.
//
// One clock: every change has a revision, an int64 that only grows, the same
// for all objects. One transaction is one revision. An object's
// resourceVersion is the revision that last changed it, in decimal.
package store

import (
	"context"

	"github.com/pilot-api/pilot-api/schema"
)

// Scope selects objects for List and Watch. The zero Scope is everything.
type Scope struct {
	// Kind limits to one kind; nil means all kinds. Namespace limits to one
	// namespace; "" means all. Name limits to one object and needs both.
	Kind      *schema.Kind
	Namespace string
	Name      string
}

// Contains reports whether an object of that key is in scope.
func (s Scope) Contains(k schema.Key) bool {
	return (s.Kind == nil || s.Kind.Kind == k.Kind) &&
		(s.Namespace == "" || s.Namespace == k.Namespace) &&
		(s.Name == "" || s.Name == k.Name)
}

// ReadOptions say how fresh a Get must be. The zero value is linearizable: the
// answer reflects every write acknowledged before the call began.
type ReadOptions struct {
	// AtLeast accepts an answer that reflects at least this revision, and
	// waits for it if need be (bounded by the context). 0 is linearizable;
	// Any takes whatever is at hand.
	AtLeast int64
}

// Any, as ReadOptions.AtLeast or ListOptions.AtLeast, asks for whatever state
// is at hand, however old.
const Any int64 = -1

// ListOptions say how fresh a List must be, as ReadOptions do, or pin it.
type ListOptions struct {
	AtLeast int64
	// Exact lists the state at exactly this revision; 0 means not pinned.
	// ErrExpired when it was compacted, ErrFuture when not reached yet. Not
	// to be used together with AtLeast.
	Exact int64
	// Limit is how many objects the list has at most; 0 is all. After leaves
	// out all up to and with that key, in the order of lists, whether there
	// is such an object or not; it goes without AtLeast. So pages at one
	// Exact revision, each after the last object of the one before, are the
	// list at that revision.
	Limit int
	After schema.Key
}

// List is a consistent set of objects, sorted by kind order (schema.Kinds),
// namespace, name, as Compare does.
type List struct {
	// Revision is the revision the list reflects; a Watch from it misses
	// nothing and repeats nothing.
	Revision int64
	Items    []*schema.Object
	// Remaining is how many objects of the scope a Limit left out behind the
	// last item, those that cannot be read included; -1 when there may be
	// some that nobody counted. A list without items is the last page.
	Remaining int
	// Unreadable are the stored values of the scope that cannot be read, and so
	// are not among Items.
	Unreadable []Unreadable
}

// Reader is the read side. All methods are safe for concurrent use. Objects
// that come back are shared and immutable.
type Reader interface {
	// Get returns ErrNotFound when there is no such object, ErrUnreadable when
	// what is stored under the key cannot be read.
	Get(ctx context.Context, key schema.Key, opts ReadOptions) (*schema.Object, error)
	// List never fails for want of objects: it returns an empty list.
	List(ctx context.Context, scope Scope, opts ListOptions) (*List, error)
	// Watch delivers every change in scope with a revision greater than
	// after, in order, each exactly once, until ctx ends or the watch fails.
	// after 0 means "from now on". ErrExpired, at the call or as the
	// Watcher's Err, means that changes after that revision are no longer
	// kept: list again and watch from the list's revision. ErrFuture when
	// after is beyond the store's revision.
	Watch(ctx context.Context, scope Scope, after int64) (Watcher, error)
	// Revision is the newest revision of the store, linearizable: not older
	// than any write acknowledged before the call began. A watch of
	// everything comes to it by changes alone.
	Revision(ctx context.Context) (int64, error)
}

// Rewinder is a Reader that knows how far back it can be read.
type Rewinder interface {
	// Rewind returns the oldest revision, not older than to, that lists
	// (ListOptions.Exact) and watches can start from. It may be gone when
	// they do: then they say ErrExpired.
	Rewind(ctx context.Context, to int64) (int64, error)
}

// Timekeeper is a Reader that may know its revision without asking anybody else.
type Timekeeper interface {
	// Now is Revision, at once; ok is false where others must be asked.
	Now(ctx context.Context) (revision int64, ok bool)
}

// Counter is a Reader that can count without reading.
type Counter interface {
	// Count is how many objects are stored, those that cannot be read
	// included, at a revision that is linearizable as that of Revision.
	Count(ctx context.Context) (count int, revision int64, err error)
}

// Repeater is a Reader that can tell again what one revision changed.
type Repeater interface {
	// Repeat is the changes of a revision in a scope, of any that a watch may go
	// on from; ErrExpired when they are no longer kept. The slice is shared.
	Repeat(scope Scope, revision int64) ([]Event, error)
}

// Interface is a whole store.
type Interface interface {
	Reader
	Historian

	// Create stores a new object and returns it with resourceVersion, uid,
	// creationTimestamp and generation 1 set; what the given object says of
	// these, and of its deletion, is passed over. ErrExists when the key is
	// taken. A resourceVersion on the given object is ErrInvalid.
	Create(ctx context.Context, obj *schema.Object) (*schema.Object, error)

	// Update replaces an object. With a resourceVersion on obj it must be
	// the stored one, else ErrConflict; without one the update is
	// unconditional. ErrNotFound when there is none. uid, creationTimestamp
	// and what is known of a deletion stay as stored (another uid given:
	// ErrConflict); generation grows by one when the spec changed. An update
	// that changes nothing writes nothing and returns the stored object.
	//
	// An object that is being deleted takes no new finalizers (ErrInvalid);
	// an update that leaves it none removes it, and returns it as it was
	// given with the revision of the deletion as its resourceVersion.
	Update(ctx context.Context, obj *schema.Object) (*schema.Object, error)

	// UpdateFunc is Update with what change makes of the stored object. It
	// is written only if that object is still the stored one; if somebody
	// else was faster, change is called again with the newer one, until ctx
	// ends. So no write is lost, and none fails for being overtaken. A
	// resourceVersion that change itself sets must be the stored one, else
	// ErrConflict; what change fails with is returned as it is. change must
	// be quick, may be called any number of times, and must not use the
	// store.
	UpdateFunc(ctx context.Context, key schema.Key, change Change) (*schema.Object, error)

	// Delete removes an object if it meets the preconditions and returns
	// its last state, with the revision of the deletion as its
	// resourceVersion. ErrNotFound, or ErrConflict for a failed
	// precondition.
	//
	// An object with finalizers is marked instead: it gets a
	// deletionTimestamp, is returned so, and is removed by the update that
	// takes its last finalizer away. To delete it again changes nothing.
	Delete(ctx context.Context, key schema.Key, pre Preconditions) (*schema.Object, error)

	// Txn does all operations at one revision, or none: the first that
	// fails decides the error, which names its index (Error.Index). Keys
	// must differ (ErrInvalid). The results stand in the order of ops. At
	// most MaxTxnOps operations; a store may take fewer, and says how many
	// with ErrTooLarge before it reads anything.
	Txn(ctx context.Context, ops []Op) ([]*schema.Object, error)
}

// MaxTxnOps bounds one transaction of any store.
const MaxTxnOps = 10_000

// Preconditions guard a delete; empty fields are not checked.
type Preconditions struct {
	UID             string
	ResourceVersion string
}

// Verb is what an Op does.
type Verb string

const (
	OpCreate Verb = "create"
	OpUpdate Verb = "update"
	OpDelete Verb = "delete"
	// OpApply is an update of what is there, and else a create, unless its
	// resourceVersion (ErrNotFound) or uid (ErrConflict) means what was there.
	// One by function gets nil where nothing is there, and says itself who owns
	// what (metadata.managedFields); after all other verbs the author owns what
	// changes, of an object that was ever applied by function.
	OpApply Verb = "apply"
)

// Change makes the next state of an object out of the stored one, which is
// shared and stays as it is.
type Change func(stored *schema.Object) (*schema.Object, error)

// Op is one step of a transaction. Create, update and apply use Object, delete uses
// Key and Pre; an update or apply by function uses Key and Change instead of Object.
// The rules are those of the single methods.
type Op struct {
	Verb   Verb
	Object *schema.Object
	Key    schema.Key
	Pre    Preconditions
	Change Change
}

// Target is the key the operation works on.
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

// What a watch over HTTP says beside changes: that all up to a revision has
// been told, and why it ends.
const (
	BookmarkFrame = "BOOKMARK"
	ErrorFrame    = "ERROR"
)

// Event is one change. Object is the new state or, for Deleted, the last one
// with the revision of the deletion as its resourceVersion. Previous is the
// state before a Modified or Deleted event when the store knows it, else nil.
type Event struct {
	Type     EventType
	Object   *schema.Object
	Previous *schema.Object
}

// Batch is all changes in scope of one or more whole revisions, in order: a
// transaction is never split. A Batch without events only says that the
// watcher has now seen everything up to Revision.
type Batch struct {
	Revision int64
	Events   []Event
	// Readings are the values in scope that became unreadable, or stopped being
	// so, in order. A store that never loses a value has none.
	Readings []Reading
}

// Watcher is a running watch. It ends with the context given to Watch.
type Watcher interface {
	// Batches is closed when the watch ends. A reader that stays behind for
	// too long is cut off (the implementation bounds what it keeps), with
	// ErrSlow as Err: list or watch again from the last revision seen.
	Batches() <-chan Batch
	// Err is why Batches was closed: nil until then, ctx's error when the
	// context ended.
	Err() error
	// RequestProgress asks for a Batch, empty if need be, as soon as the
	// watch has delivered everything up to the store's present revision. It
	// does not wait.
	RequestProgress(ctx context.Context) error
}

// Puller is a Watcher that can be read without a goroutine in between, by one
// goroutine: for thousands of watches that mostly wait. It is read by Pull or by
// Batches, not by both.
type Puller interface {
	Watcher
	// Ready has a token while Pull may bring something: until Pull says that there is
	// nothing, and from when there is something again. It is never closed: the end of
	// the watch comes as an error of Pull, and that of a context makes no token.
	Ready() <-chan struct{}
	// Pull is the next batch, as Batches would bring it, if there is one now. Its error
	// is that of Err.
	Pull() (b Batch, some bool, err error)
}
