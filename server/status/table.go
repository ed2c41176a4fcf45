package status

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// Table has the statuses of all objects at one moment. It does not change.
type Table struct {
	revision int64 // of the configuration in force
	entries  map[schema.Key]*entry
	version  uint64            // counts the refreshes with news
	news     []schema.Key      // objects whose status this version changed
	changed  chan struct{}     // closed by the next version
	interned *internedStatuses // used during a refresh only

	ownNamesOnly bool // see Options
	stored       bool // see Stored
}

// Stored is the table of the statuses that objects have from the store, at the version that
// they show (docs/decisions/037-status-in-watches.md). It is the same at all replicas.
var Stored = &Table{stored: true, changed: make(chan struct{})}

func newTable() *Table { return &Table{changed: make(chan struct{}), interned: &internedStatuses{}} }

// Revision is that of the configuration in force.
func (t *Table) Revision() int64 { return t.revision }

// Version increases with each table that differs from the one before.
func (t *Table) Version() uint64 { return t.version }

// entry is the status of an object.
type entry struct {
	resourceVersion string
	*internedStatus
	version uint64 // version of the board that brought it
	plain   bool   // follows from numbers of proxies alone
}

// revision returns the revision of the object that the status is about.
func (e *entry) revision() int64 {
	n, err := strconv.ParseInt(e.resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Of returns the status of an object, and its JSON. Do not change the JSON: it is shared.
func (t *Table) Of(o *schema.Object) (schema.Status, []byte) {
	if t.stored {
		return storedOf(o)
	}
	o = o.WithoutStatus()
	if known := t.entries[o.Key()]; known != nil && known.resourceVersion == o.Meta.ResourceVersion {
		return known.status, known.text
	}
	status := pending(o, t.revision)
	return status, textOf(status)
}

// next returns the table after a look.
func (t *Table) next(own *discovery.ObjectStatuses, others peerSnapshot) *Table {
	next := &Table{
		revision: own.Revision, entries: make(map[schema.Key]*entry, len(own.Objects)),
		version: t.version, changed: t.changed, interned: t.interned, ownNamesOnly: t.ownNamesOnly,
	}
	now := metav1.Now().Rfc3339Copy()
	for _, o := range own.Objects {
		key := o.Key()
		was := t.entries[key]
		is := next.entry(now, o, others.add(own.Of(key.Ref(), o.Revision()), key.Ref(), o.Revision()), was)
		if is != was {
			is.version = t.version + 1
			next.news = append(next.news, key)
		}
		next.entries[key] = is
	}
	if len(next.news) > 0 {
		next.version, next.changed = t.version+1, make(chan struct{})
		next.interned.keep(next.entries)
	} else {
		next.news = t.news // It is the same version.
	}
	return next
}

// entry returns the entry of an object. It returns before if that is still right.
func (t *Table) entry(now metav1.Time, o *schema.Object, total fleetStatus, before *entry) *entry {
	plain, known := total.isPlain(), before != nil && before.resourceVersion == o.Meta.ResourceVersion
	if known && plain && before.plain && before.status.Programmed == total.programmed() {
		return before // cheap, and the case of most objects
	}
	if t.ownNamesOnly {
		total = total.within(o.Meta.Namespace)
	}
	status := statusOf(o, total)
	if known && sameStatus(before.status, status) {
		before.plain = plain
		return before
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.LastTransitionTime = now
		if before != nil && before.status.Conditions[i].Status == c.Status {
			c.LastTransitionTime = before.status.Conditions[i].LastTransitionTime
		}
		if c.LastTransitionTime.Before(&o.Meta.CreationTimestamp) { // It is the time of an earlier object of that name.
			c.LastTransitionTime = o.Meta.CreationTimestamp
		}
	}
	return &entry{resourceVersion: o.Meta.ResourceVersion, internedStatus: t.interned.intern(status), plain: plain}
}

// Texts returns the JSON of the statuses of objs, by index. A nil table has none.
func (t *Table) Texts(objs []*schema.Object) [][]byte {
	texts := make([][]byte, len(objs))
	if t == nil {
		return texts
	}
	for i, o := range objs {
		if !o.Kind.Flat {
			_, texts[i] = t.Of(o)
		}
	}
	return texts
}
