// Package consistency checks the answers of a config store. From a history of operations
// and watches, and from the order of changes that the store keeps, it finds every answer
// that the contract of store.Interface does not allow. It starts no programs:
// internal/consistency/soak makes histories with real programs and real faults.
package consistency

import (
	"fmt"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Version is one state of an object. Values are unique: no two writes of a history have
// the same.
type Version struct {
	Key      schema.Key
	Revision int64
	Value    string
}

func (v Version) String() string { return fmt.Sprintf("%s %q at %d", v.Key, v.Value, v.Revision) }

// Change is one change of an object. The value of a deletion is the last one.
type Change struct {
	Type store.EventType
	Version
}

func (c Change) String() string { return fmt.Sprintf("%s %s", c.Type, c.Version) }

// Verb is the kind of an operation.
type Verb string

const (
	Create Verb = "create"
	Update Verb = "update"
	Patch  Verb = "patch"
	Delete Verb = "delete"
	// Apply writes whether the object exists or not. Only a step does it.
	Apply Verb = "apply"
	// Txn does all its steps at one revision, or none.
	Txn  Verb = "transaction"
	Get  Verb = "get"
	List Verb = "list"
)

func (v Verb) writes() bool { return v != Get && v != List }

// Outcome is the kind of an operation's answer.
type Outcome string

const (
	OK       Outcome = "ok"
	NotFound Outcome = "not found"
	Exists   Outcome = "exists"
	Conflict Outcome = "conflict"
	// Gone means that an exact revision is no longer kept.
	Gone Outcome = "gone"
	// Refused means that nothing was done. It gives no information.
	Refused Outcome = "refused"
	// Unknown means that it may have happened, or may happen at any later time.
	Unknown Outcome = "unknown"
	// Unexpected is an answer that the request can never have.
	Unexpected Outcome = "unexpected"
)

// Operation is one request. Times are since the start of the history, on one monotonic
// clock.
type Operation struct {
	Client, Server string
	Verb           Verb
	Key            schema.Key  // All but lists and transactions.
	Scope          store.Scope // Lists.
	Value          string      // The value that a create, update or patch stores.
	Expect         int64       // The resourceVersion that a write depends on, 0 for none.
	Steps          []Step      // Transactions: each about another object, at least one with a value.
	AtLeast        int64       // Reads, as in store.ReadOptions.
	Exact          int64       // Lists, as in store.ListOptions.
	Limit          int         // Lists that were read page by page, in objects per page.
	// Return, for a list whose pages were all read, is when its first page arrived,
	// which fixed its revision.
	Call, Return time.Duration

	Outcome  Outcome
	Failed   int       // The step that a transaction was refused for.
	Detail   string    // Anything that helps to read a violation.
	Revision int64     // Of the object in the answer, of the list, or of the transaction.
	Got      string    // The value that a get returned.
	Items    []Version // The items that a list returned.
}

func (o *Operation) String() string {
	text := fmt.Sprintf("%s..%s %s at %s: %s", seconds(o.Call), seconds(o.Return), o.Client, o.Server, o.Verb)
	switch o.Verb {
	case List:
		text += fmt.Sprintf(" %s/%s, %d items in pages of %d", kindName(o.Scope), o.Scope.Namespace, len(o.Items), o.Limit)
	case Txn:
		text += fmt.Sprintf(" %v, step %d", o.Steps, o.Failed)
	default:
		text += strings.TrimPrefix(o.Does()[0].String(), string(o.Verb))
	}
	if o.AtLeast != 0 {
		text += fmt.Sprintf(" at least %d", o.AtLeast)
	}
	if o.Exact != 0 {
		text += fmt.Sprintf(" exactly %d", o.Exact)
	}
	return text + fmt.Sprintf(": %s %d %s%s", o.Outcome, o.Revision, o.Got, o.Detail)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.4fs", d.Seconds()) }

func kindName(s store.Scope) string {
	if s.Kind == nil {
		return "*"
	}
	return s.Kind.Kind
}

// Frame is one action of a watcher, or one message that it received.
type Frame struct {
	At       time.Duration
	Type     FrameType
	Revision int64
	Key      schema.Key // Events.
	Value    string     // Events.
	Detail   string
}

func (f Frame) String() string {
	text := fmt.Sprintf("%s %s %d", seconds(f.At), f.Type, f.Revision)
	if f.Value != "" {
		text += fmt.Sprintf(" %s %q", f.Key, f.Value)
	}
	return text + " " + f.Detail
}

// FrameType is the type of an event, or one of those below.
type FrameType string

const (
	// Began is a request for what comes after Revision.
	Began FrameType = "BEGAN"
	// Bookmark says that everything up to Revision was sent.
	Bookmark FrameType = store.BookmarkFrame
	// Expired says that the changes after Revision are no longer kept.
	Expired FrameType = "EXPIRED"
	// Broken is any other end.
	Broken FrameType = "BROKEN"
)

// Watch is everything that one watcher received over all its streams. Each stream begins
// at the last revision that the watcher knows.
type Watch struct {
	Name  string
	Scope store.Scope
	// Plain means that the watcher resumes after its last event, as Kubernetes clients
	// do. If that event was in the middle of a transaction, the watcher receives the
	// whole transaction again. Others know where transactions end.
	Plain  bool
	Frames []Frame
	// Until is the revision that the watcher had time to reach, 0 for a watcher that
	// left by itself.
	Until int64
}

// History is the record of a run.
type History struct {
	Operations []Operation
	Watches    []*Watch
	// Changes is the store's own order, complete from its first change.
	Changes []Change
	// Kept is how many changes a watcher may go back, unless another program compacted
	// etcd.
	Kept int
	// Compactions are those that other programs made.
	Compactions []Compaction
}

// Compaction removes the changes up to a revision from etcd. At is the time of the
// request.
type Compaction struct {
	At       time.Duration
	Revision int64
}

// Violation is one answer that the contract does not allow.
type Violation struct {
	Rule string
	Text string
}

func (v Violation) String() string { return v.Rule + ": " + v.Text }
