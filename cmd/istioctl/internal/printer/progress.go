package printer

import (
	"cmp"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// ProgressTable prints changes with the proxies' progress, and an additional row when only
// that progress changes.
type ProgressTable struct {
	*TableWriter
	known map[schema.Key]progress // the newest state received for each object
	shown map[schema.Key]progress // what is on the screen
}

// progress is the proxies' progress with one revision of an object.
type progress struct {
	revision int64
	far      string
}

// NewProgressTable returns a table with a column for the progress.
func NewProgressTable(t *TableWriter) *ProgressTable {
	s := &ProgressTable{TableWriter: t, known: map[schema.Key]progress{}, shown: map[schema.Key]progress{}}
	t.far = func(o *schema.Object) string { return s.of(o).far }
	return s
}

// of returns the state of an object as far as it is known.
func (t *ProgressTable) of(o *schema.Object) progress {
	known, ok := t.known[o.Key()]
	switch {
	case !ok:
		return progress{o.Revision(), None}
	case known.revision != o.Revision():
		return progress{o.Revision(), schema.ReasonPending}
	}
	return known
}

// Event prints the row of a changed object.
func (t *ProgressTable) Event(e store.Event) error {
	key := e.Object.Key()
	if e.Type == store.Deleted {
		delete(t.known, key)
		delete(t.shown, key)
	} else {
		t.shown[key] = t.of(e.Object)
	}
	return t.TableWriter.Event(e)
}

// Learn records the state of an object. The next event of the object prints it.
func (t *ProgressTable) Learn(o client.ObjectWithStatus) error {
	far, err := howFar(o)
	if err != nil || o.Revision() < t.known[o.Key()].revision {
		return err // Another replica may be behind.
	}
	t.known[o.Key()] = progress{o.Revision(), cmp.Or(far, None)}
	return nil
}

// Status prints the row of an object on the screen if its state has changed.
func (t *ProgressTable) Status(o client.ObjectWithStatus) error {
	if err := t.Learn(o); err != nil {
		return err
	}
	shown, ok := t.shown[o.Key()]
	if now := t.of(o.Object); !ok || now == shown || now.revision != shown.revision {
		return nil
	}
	return t.Event(store.Event{Type: store.Modified, Object: o.Object})
}
