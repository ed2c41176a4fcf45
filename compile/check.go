package compile

// check is the check of an object as callers see it. What it says is about their
// viewpoint; most objects are checked as the callers of their own namespace.
type check struct {
	*viewpoint
	*reporter
	plan *plan // the same reader and reporter
}

// from returns the check of an object as callers at the viewpoint see it.
func (p *plan) from(v *viewpoint) *check { return &check{viewpoint: v, reporter: &p.reporter, plan: p} }
