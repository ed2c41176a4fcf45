// Package consistency judges what clients of a config store were told: by a
// history of their operations and watches, and by the order of changes that
// the store itself keeps, it finds every answer that the contract of
// store.Interface does not allow. It starts nothing; internal/consistency/soak
// makes histories with real programs and real faults.
package consistency

import (
	"fmt"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Version is one state of an object. Values are unique: no two writes of a
// history carry the same.
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

// Verb is what an operation does.
type Verb string

const (
	Create Verb = "create"
	Update Verb = "update"
	Patch  Verb = "patch"
	Delete Verb = "delete"
	// Apply writes whether the object is there or not; only a step does it.
	Apply Verb = "apply"
	// Txn does all its steps, at one revision, or none.
	Txn  Verb = "transaction"
	Get  Verb = "get"
	List Verb = "list"
)

func (v Verb) writes() bool { return v != Get && v != List }

// Outcome is what an operation was answered.
type Outcome string

const (
	OK       Outcome = "ok"
	NotFound Outcome = "not found"
	Exists   Outcome = "exists"
	Conflict Outcome = "conflict"
	// Gone is the answer that an exact revision is no longer kept.
	Gone Outcome = "gone"
	// Refused did nothing and tells nothing.
	Refused Outcome = "refused"
	// Unknown may have happened, now or at any later time.
	Unknown Outcome = "unknown"
	// Unexpected is an answer that the request can never have.
	Unexpected Outcome = "unexpected"
)

// Operation is one request. Times are since the begin of the history, on one
// monotonic clock.
type Operation struct {
	Client, Server string
	Verb           Verb
	Key            schema.Key  // All but lists and transactions.
	Scope          store.Scope // Lists.
	Value          string      // What a create, update or patch wants to store.
	Expect         int64       // The resourceVersion that a write depends on, 0 for none.
	Steps          []Step      // Transactions: each about another object, one at least with a value.
	AtLeast        int64       // Reads, as in store.ReadOptions.
	Exact          int64       // Lists, as in store.ListOptions.
	Limit          int         // Lists that were read page by page, in objects a page.
	// Return of a list in pages that was read to its end is when its first page
	// was there, which fixed its revision.
	Call, Return time.Duration

	Outcome  Outcome
	Failed   int       // The step that a transaction was refused for.
	Detail   string    // Anything that helps to read a violation.
	Revision int64     // Of the object in the answer, of the list, or of the transaction.
	Got      string    // The value that a get answered.
	Items    []Version // What a list answered.
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

// Frame is one thing that a watcher did or was told.
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
	// Began to ask for what comes after Revision.
	Began FrameType = "BEGAN"
	// Bookmark says that everything up to Revision was told.
	Bookmark FrameType = store.BookmarkFrame
	// Expired is the answer that what comes after Revision is no longer kept.
	Expired FrameType = "EXPIRED"
	// Broken is any other end.
	Broken FrameType = "BROKEN"
)

// Watch is all that one watcher was told, over as many streams as it took: each
// begins at the last revision that it knows.
type Watch struct {
	Name  string
	Scope store.Scope
	// Plain: it goes on from the last event that it was told, as Kubernetes'
	// clients do. A transaction, of which that may have been in the middle, is
	// told again to it as a whole. Others know where transactions end.
	Plain  bool
	Frames []Frame
	// Until is the revision that it had the time to come to; 0 for a watcher
	// that went away by itself.
	Until int64
}

// History is what happened.
type History struct {
	Operations []Operation
	Watches    []*Watch
	// Changes is the order of the store itself, whole from its first change.
	Changes []Change
	// Kept is how many changes a watcher may go back, unless others compacted
	// etcd.
	Kept int
	// Compactions are what others did to etcd.
	Compactions []Compaction
}

// Compaction takes the changes up to a revision from etcd. At is when it was
// asked for.
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
