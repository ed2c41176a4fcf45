package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// Author is who changes something, and by which program, as far as the request
// says. A store notes it and believes it: to check who asks is the work of what
// stands before the server.
type Author struct {
	User    string `json:"user,omitempty"`
	Program string `json:"program,omitempty"`
}

type authorKey struct{}

// MaxAuthorBytes bounds each name of an Author; what is longer is cut.
const MaxAuthorBytes = 256

// WithAuthor makes the writes under a context those of an author.
func WithAuthor(ctx context.Context, a Author) context.Context {
	return context.WithValue(ctx, authorKey{}, Author{cut(a.User), cut(a.Program)})
}

func cut(name string) string {
	if len(name) > MaxAuthorBytes {
		name = name[:MaxAuthorBytes]
	}
	return strings.ToValidUTF8(name, "")
}

// AuthorOf is who writes under a context; the zero Author when nobody said.
func AuthorOf(ctx context.Context) Author {
	a, _ := ctx.Value(authorKey{}).(Author)
	return a
}

// Record is one change of one object, as a store keeps it beside the object.
type Record struct {
	// Revision is that of the change.
	Revision int64
	// Verb goes by what came of it: OpCreate when there was no object before,
	// OpDelete when there is none since, OpUpdate otherwise.
	Verb   Verb
	Time   time.Time
	Author Author
	// Transaction is the same for all changes of one transaction, and no other.
	Transaction string
	// Before is the state that the change replaced, nil when there was none.
	Before *schema.Object
	// Lost says that there was one and it is not kept: it could not be read, or
	// was too large for the store.
	Lost bool
}

// Version is one state of an object and the change with which it began.
type Version struct {
	Revision int64
	// Object is nil after a delete, and where the state is Lost.
	Object *schema.Object
	Lost   bool
	// Change is nil for the oldest version that is known, if what began it is
	// no longer kept.
	Change *Record
	// AbsentSince is from which revision on it is known that there was no object:
	// after a version without one, or before the oldest, if a create began it.
	// Earlier there may have been one of which there is no record. Of the oldest
	// it is 0 if nothing is known.
	AbsentSince int64
}

// Difference is what became of one object since a revision; nil stands for no
// object.
type Difference struct {
	Key       schema.Key
	Then, Now *schema.Object
	// Unreadable is the stored value if it cannot be read. Now is nil then.
	Unreadable *Unreadable
	// Lost says that Then is not known: the value that cannot be read was already
	// stored at that revision. Historians do not look for such values, a server does.
	Lost bool
	// Revision is that of the newest change of the object.
	Revision int64
}

// ChangesOptions say which part of the changes is meant.
type ChangesOptions struct {
	// Since is the revision that the present state is compared with.
	Since int64
	// Limit is how many differences a page has at most. It must be positive. A page
	// has fewer, at least one, where their objects are large.
	Limit int
	// After leaves out all up to and with that key, in the order of the pages.
	After schema.Key
}

// MaxChangesPage bounds the objects of a page of changes, in bytes of JSON: the one
// that exceeds it is the last of its page.
const MaxChangesPage = 4 << 20

// Size is the length of the objects of a difference as JSON, in bytes.
func (d Difference) Size() (size int) {
	for _, obj := range []*schema.Object{d.Then, d.Now} {
		if obj != nil {
			size += len(obj.JSON())
		}
	}
	return size
}

// Historian is the side of a store that knows what objects were. A store keeps
// the newest records of each object, some number of them, also when the object
// was deleted; how many, and for how long, is its own affair. All methods are
// safe for concurrent use.
type Historian interface {
	// History is the versions of an object that are known, the newest first.
	// ErrNotFound when there are none.
	History(ctx context.Context, key schema.Key) ([]Version, error)
	// Changes is what in a scope has changed after a revision, sorted by kind,
	// namespace and name; what was changed and changed back is there too.
	// ErrExpired when records do not reach back to that revision, with the key
	// of the object if it is known of which, and when that cannot be excluded:
	// nothing that has changed is passed over. ErrFuture when the revision is not reached; ErrTooLarge
	// when more than MaxTxnOps objects have changed.
	Changes(ctx context.Context, scope Scope, revision int64) ([]Difference, error)
	// ChangesPage is a part of Changes, however many objects have changed, in an
	// order of keys that is the store's own and always the same. Each page shows the
	// state of its own time. So pages, each after the last key of the one before,
	// have every object once that had changed when the first was read. A page
	// has at least one difference if more says that another page follows, which may
	// be empty.
	ChangesPage(ctx context.Context, scope Scope, opts ChangesOptions) (page []Difference, more bool, err error)
}

// AllChanges makes Historian.Changes of pages.
func AllChanges(ctx context.Context, h Historian, scope Scope, revision int64) ([]Difference, error) {
	var all []Difference
	opts := ChangesOptions{Since: revision, Limit: 1000}
	for {
		page, more, err := h.ChangesPage(ctx, scope, opts)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(all) > MaxTxnOps {
			return nil, &Error{Kind: ErrTooLarge, Detail: fmt.Sprintf(
				"more than %d objects have changed since revision %d: ask for pages, or for one kind", MaxTxnOps, revision)}
		}
		if !more || len(page) == 0 {
			SortDifferences(all)
			return all, nil
		}
		opts.After = page[len(page)-1].Key
	}
}

// SortDifferences puts them in the order of Historian.Changes.
func SortDifferences(ds []Difference) {
	slices.SortFunc(ds, func(a, b Difference) int {
		return cmp.Or(
			strings.Compare(a.Key.Kind, b.Key.Kind),
			strings.Compare(a.Key.Namespace, b.Key.Namespace),
			strings.Compare(a.Key.Name, b.Key.Name),
		)
	})
}

// Reach is how far back the records of an object tell all that it was, 0 for what
// is not known: after Floor nothing was changed without one, and Oldest is from
// which revision on none is missing before the oldest.
type Reach struct{ Floor, Oldest int64 }

// Versions puts versions together from the records of an object, the oldest
// first, and its present state. The result begins with the newest.
func Versions(records []Record, current *schema.Object, reach Reach) []Version {
	var out []Version
	after, lost := current, false
	for i := len(records) - 1; i >= 0; i-- {
		r := records[i]
		if after != nil && after.Revision() > r.Revision { // Made without a record.
			out = append(out, Version{Revision: after.Revision(), Object: after})
			after, lost = nil, r.Verb != OpDelete
		}
		v := Version{Revision: r.Revision, Object: after, Lost: lost || after == nil && r.Verb != OpDelete, Change: &r}
		if after == nil && !v.Lost {
			v.AbsentSince = max(r.Revision, reach.Floor)
		}
		out = append(out, v)
		after, lost = r.Before, r.Lost
	}
	if after != nil {
		out = append(out, Version{Revision: after.Revision(), Object: after})
	}
	if len(records) > 0 && records[0].Verb == OpCreate {
		out[len(out)-1].AbsentSince = reach.Oldest
	}
	return out
}

// At is an object as it was at a revision. ErrNotFound when it was not there,
// ErrExpired when that is not known.
func At(ctx context.Context, h Historian, key schema.Key, revision int64) (*schema.Object, error) {
	versions, err := h.History(ctx, key)
	if err == nil {
		return VersionAt(versions, key, revision)
	}
	kind, ok := schema.KindByName(key.Kind)
	if !ok || !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	// Was there never one, or are its records gone?
	scope := Scope{Kind: kind, Namespace: key.Namespace, Name: key.Name}
	if _, unknown := h.Changes(ctx, scope, revision); errors.Is(unknown, ErrExpired) {
		return nil, unknown
	}
	return nil, err
}

// VersionAt is the state of an object at a revision, out of its versions.
// ErrNotFound when it was not there, ErrExpired when that is not known.
func VersionAt(versions []Version, key schema.Key, revision int64) (*schema.Object, error) {
	for _, v := range versions {
		switch {
		case v.Revision > revision:
		case v.Lost:
			return nil, &Error{Kind: ErrExpired, Key: key, Detail: "its state of that time was not kept"}
		case v.Object == nil && v.Revision < revision && revision < v.AbsentSince:
			return nil, &Error{Kind: ErrExpired, Key: key, Detail: "what there was at that time was not noted"}
		case v.Object == nil:
			return nil, &Error{Kind: ErrNotFound, Key: key, Detail: fmt.Sprintf("it was deleted at revision %d", v.Revision)}
		default:
			return v.Object, nil
		}
	}
	if first := versions[len(versions)-1]; first.AbsentSince > 0 && revision >= first.AbsentSince {
		return nil, &Error{Kind: ErrNotFound, Key: key, Detail: fmt.Sprintf("it was created at revision %d", first.Revision)}
	}
	return nil, notReached(key, revision, versions[len(versions)-1].Revision)
}

// Then is the state of an object at a revision, by the oldest record of its
// changes after that revision; complete says that no change between the two
// can be missing where the record itself cannot tell.
func (r Record) Then(key schema.Key, revision int64, complete bool) (*schema.Object, error) {
	switch {
	case r.Lost:
		return nil, &Error{Kind: ErrExpired, Key: key, Detail: "its state of that time was not kept"}
	case r.Before == nil && complete:
		return nil, nil
	case r.Before == nil:
		return nil, &Error{Kind: ErrExpired, Key: key, Detail: "its history does not reach back to that revision"}
	case r.Before.Revision() > revision:
		return nil, notReached(key, revision, r.Before.Revision())
	}
	return r.Before, nil
}

func notReached(key schema.Key, revision, oldest int64) error {
	return &Error{Kind: ErrExpired, Key: key, Detail: fmt.Sprintf(
		"its history does not reach back to revision %d; the oldest version that is known is of %d", revision, oldest)}
}

// Undo is the operation that brings the difference to an end, on condition that
// the object is still what Now says. ok is false when nothing but what the store
// itself sets differs.
func (d Difference) Undo() (op Op, ok bool, err error) {
	switch {
	case d.Lost:
		return Op{}, false, &Error{Kind: ErrExpired, Key: d.Key, Detail: "the stored value cannot be read, and it is the one of that revision: " +
			"what the object was then is not known; " + howToMend}
	case d.Unreadable != nil:
		op, err = d.replaceUnreadable()
		return op, true, err
	case d.Then == nil && d.Now == nil:
		return Op{}, false, nil
	case d.Then == nil:
		pre := Preconditions{UID: string(d.Now.Meta.UID), ResourceVersion: d.Now.Meta.ResourceVersion}
		return Op{Verb: OpDelete, Key: d.Key, Pre: pre}, true, nil
	}
	meta := d.Then.Meta
	meta.ResourceVersion, meta.UID = "", ""
	if d.Now == nil {
		obj, err := d.Then.WithMeta(meta)
		return Op{Verb: OpCreate, Object: obj}, true, err
	}
	meta.ResourceVersion, meta.ManagedFields = d.Now.Meta.ResourceVersion, nil
	if d.Now.Meta.DeletionTimestamp != nil {
		meta.Finalizers = d.Now.Meta.Finalizers // It takes no others.
	}
	obj, err := d.Then.WithMeta(meta)
	if err != nil {
		return Op{}, false, err
	}
	next, err := merged(obj, d.Now, d.Now.Meta.ManagedFields)
	return Op{Verb: OpUpdate, Object: obj}, next != d.Now, err
}

// replaceUnreadable puts the earlier state, or nothing, in the place of a value that
// cannot be read, on condition that the same value is still stored.
func (d Difference) replaceUnreadable() (Op, error) {
	revision := strconv.FormatInt(d.Unreadable.Revision, 10)
	if d.Then == nil {
		return Op{Verb: OpDelete, Key: d.Key, Pre: Preconditions{ResourceVersion: revision}}, nil
	}
	meta := d.Then.Meta
	meta.ResourceVersion, meta.UID = revision, ""
	obj, err := d.Then.WithMeta(meta)
	return Op{Verb: OpUpdate, Object: obj}, err
}
