package compile

// check checks an object as callers see it. Its problems are about their viewpoint. Most
// objects are checked from the viewpoint of callers in their own namespace.
type check struct {
	*viewpoint
	*reporter
	plan *plan // the same reader and reporter
}

// from returns the check of an object as callers at the viewpoint see it.
func (p *plan) from(v *viewpoint) *check { return &check{viewpoint: v, reporter: &p.reporter, plan: p} }
