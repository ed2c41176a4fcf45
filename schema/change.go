package schema

// Change is what became of one object between two revisions: Before is nil for
// one that came, After for one that went.
type Change struct{ Before, After *Object }

// Key of the object, which is the same before and after.
func (c Change) Key() Key { return c.Object().Key() }

// Object is what is there after, or what was there when there is nothing.
func (c Change) Object() *Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}
