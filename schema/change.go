package schema

// Change is what became of one object between two revisions: Before is nil for
// one that came, After for one that went.
type Change struct{ Before, After *Object }

// Key of the object, which is the same before and after.
func (c Change) Key() Key {
	if c.After != nil {
		return c.After.Key()
	}
	return c.Before.Key()
}
