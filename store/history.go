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

// Author is the user that changes something, and the user's program. The JSON is that of
// stored records. A store records both and does not verify them: its caller must.
type Author struct {
	User      string `json:"user,omitempty"`
	UserAgent string `json:"program,omitempty"`
}

type authorKey struct{}

// MaxAuthorBytes bounds each name of an Author. Longer names are cut.
const MaxAuthorBytes = 256

// WithAuthor returns a context whose writes are attributed to an author.
func WithAuthor(ctx context.Context, a Author) context.Context {
	return context.WithValue(ctx, authorKey{}, Author{cut(a.User), cut(a.UserAgent)})
}

func cut(name string) string {
	if len(name) > MaxAuthorBytes {
		name = name[:MaxAuthorBytes]
	}
	return strings.ToValidUTF8(name, "")
}

// AuthorOf returns the author of a context, or the zero Author if none was set.
func AuthorOf(ctx context.Context) Author {
	a, _ := ctx.Value(authorKey{}).(Author)
	return a
}

// Record is one change of one object. A store keeps it beside the object.
type Record struct {
	// Revision is the revision of the change.
	Revision int64
	// Verb depends on the result: OpCreate if there was no object before, OpDelete if there
	// is none after, OpUpdate otherwise.
	Verb   Verb
	Time   time.Time
	Author Author
	// Transaction is an id. It is the same for all changes of one transaction, and differs
	// from that of all others.
	Transaction string
	// Before is the state that the change replaced, nil if there was none.
	Before *schema.Object
	// Lost means that there was a state before, but it is not kept: it could not be read,
	// or it was too large for the store.
	Lost bool
}

// Version is one state of an object and the change that began it.
type Version struct {
	Revision int64
	// Object is nil after a delete, and if the state is Lost.
	Object *schema.Object
	Lost   bool
	// Change is nil for the oldest known version if the change that began it is no
	// longer kept.
	Change *Record
	// AbsentSince is the revision from which on the object is known not to have existed:
	// after a version without an object, or before the oldest version if a create began it.
	// An unrecorded object may have existed earlier. In the oldest version, 0 means
	// unknown.
	AbsentSince int64
}

// Difference is the change of one object between a revision and now. A nil state means
// no object.
type Difference struct {
	Key       schema.Key
	Then, Now *schema.Object
	// Unreadable is the stored value if it cannot be read. Now is then nil.
	Unreadable *Unreadable
	// Lost means that Then is unknown, because the unreadable value was already stored
	// at that revision. Historians do not look for such values; a server does.
	Lost bool
	// Revision is the revision of the newest change of the object.
	Revision int64
}

// ChangesOptions select a page of changes.
type ChangesOptions struct {
	// Since is the revision with which the present state is compared.
	Since int64
	// Limit is the maximum number of differences in a page. It must be positive. A page
	// has fewer, but at least one, if their objects are large.
	Limit int
	// After skips all keys up to and including that key, in the order of the pages.
	After schema.Key
}

// MaxChangesPage bounds the objects of a page of changes, in bytes of JSON. The
// difference that exceeds it is the last of its page.
const MaxChangesPage = 4 << 20

// Size returns the length of the objects of a difference as JSON, in bytes.
func (d Difference) Size() (size int) {
	for _, obj := range []*schema.Object{d.Then, d.Now} {
		if obj != nil {
			size += len(obj.JSON())
		}
	}
	return size
}

// Historian is the side of a store that returns earlier states of objects. A store
// keeps the newest records of each object, also after the object was deleted. The store
// decides how many it keeps and for how long. All methods are safe for concurrent use.
type Historian interface {
	// History returns the known versions of an object, the newest first. The error is
	// ErrNotFound if there are none.
	History(ctx context.Context, key schema.Key) ([]Version, error)
	// Changes returns the differences in scope since a revision, sorted by kind, namespace
	// and name. It includes objects that were changed and changed back. It never omits a
	// changed object: the error is ErrExpired if records do not reach back to that
	// revision, or may not. That error has the key of the object, if known. The error is
	// ErrFuture if the store has not reached the revision, and ErrTooLarge if more than
	// MaxTxnOps objects have changed.
	Changes(ctx context.Context, scope Scope, revision int64) ([]Difference, error)
	// ChangesPage returns a part of Changes, however many objects have changed. The store
	// fixes the order of keys. Each page shows the state at the time of its own call.
	// Request each page after the last key of the page before. Together, the pages then
	// have each object that had changed at the first call exactly once. more reports
	// whether another page follows; that page may be empty. If more is true, the page has
	// at least one difference.
	ChangesPage(ctx context.Context, scope Scope, opts ChangesOptions) (page []Difference, more bool, err error)
}

// AllChanges implements Historian.Changes with pages of h. A page that repeats a key, or
// that is empty although more reports another one, is an error.
func AllChanges(ctx context.Context, h Historian, scope Scope, revision int64) ([]Difference, error) {
	var all []Difference
	seen := map[schema.Key]bool{}
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
		for _, d := range page {
			if seen[d.Key] {
				return nil, fmt.Errorf("the store's pages of changes have %s twice", d.Key)
			}
			seen[d.Key] = true
		}
		switch {
		case !more:
			SortDifferences(all)
			return all, nil
		case len(page) == 0:
			return nil, errors.New("the store's page of changes is empty, and says that more follow")
		}
		opts.After = page[len(page)-1].Key
	}
}

// SortDifferences sorts ds in the order of Historian.Changes.
func SortDifferences(ds []Difference) {
	slices.SortFunc(ds, func(a, b Difference) int {
		return cmp.Or(
			strings.Compare(a.Key.Kind, b.Key.Kind),
			strings.Compare(a.Key.Namespace, b.Key.Namespace),
			strings.Compare(a.Key.Name, b.Key.Name),
		)
	})
}

// Reach describes how far back the records of an object are complete; 0 means unknown.
// Every change after Floor has a record. From Oldest up to the oldest kept record, no
// record is missing.
type Reach struct{ Floor, Oldest int64 }

// Versions turns the records of an object, the oldest first, and its present state into
// versions, the newest first.
func Versions(records []Record, current *schema.Object, reach Reach) []Version {
	var out []Version
	after, lost := current, false
	for i := len(records) - 1; i >= 0; i-- {
		r := records[i]
		if after != nil && after.Revision() > r.Revision { // The change has no record.
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

// At returns an object as it was at a revision. The error is ErrNotFound if there was
// no object, and ErrExpired if its state is unknown.
func At(ctx context.Context, h Historian, key schema.Key, revision int64) (*schema.Object, error) {
	versions, err := h.History(ctx, key)
	if err == nil {
		return VersionAt(versions, key, revision)
	}
	kind, ok := schema.KindByName(key.Kind)
	if !ok || !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	// Did the object never exist, or are its records gone?
	scope := Scope{Kind: kind, Namespace: key.Namespace, Name: key.Name}
	if _, unknown := h.Changes(ctx, scope, revision); errors.Is(unknown, ErrExpired) {
		return nil, unknown
	}
	return nil, err
}

// VersionAt returns the state of an object at a revision, from its versions. The error
// is ErrNotFound if there was no object, and ErrExpired if its state is unknown.
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

// Then returns the state of an object at a revision. r must be the oldest record of its
// changes after that revision. complete means that no record between the two is
// missing; it matters only if the record has no state before.
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

// Undo returns the operation that restores Then, on condition that the object is still
// in the state Now. ok is false if the states differ only in fields that the store
// sets.
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
		meta.Finalizers = d.Now.Meta.Finalizers // It accepts no new finalizers.
	}
	obj, err := d.Then.WithMeta(meta)
	if err != nil {
		return Op{}, false, err
	}
	next, err := merged(obj, d.Now, d.Now.Meta.ManagedFields)
	return Op{Verb: OpUpdate, Object: obj}, next != d.Now, err
}

// replaceUnreadable replaces an unreadable value with the earlier state, or removes it,
// on condition that the same value is still stored.
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
