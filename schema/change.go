package schema

// Change is the change of one object between two revisions. Before is nil for a new
// object, After for a deleted one.
type Change struct{ Before, After *Object }

// Key returns the key of the object, which is the same before and after.
func (c Change) Key() Key { return c.Object().Key() }

// Object returns After, or Before if the object was deleted.
func (c Change) Object() *Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}
