package xds

import "github.com/pilot-api/pilot-api/envoy/v3"

// knowing is a table with clusters to which it sends no calls.
type knowing struct {
	table *Resource
	known []string
}

// Table returns the route table for outbound calls.
func (r *Resource) Table() *Resource {
	if r.knowing != nil {
		return r.knowing.table
	}
	return r
}

// LeadsTo returns the clusters to which a table sends calls.
func (r *Resource) LeadsTo() []string { return v3.ProxylessLeadsTo(r.Shell.Message()) }

// Knows returns the clusters that a client with this table has.
func (r *Resource) Knows() []string {
	all := r.Table().LeadsTo()
	if r.knowing != nil {
		all = append(all, r.knowing.known...)
	}
	return all
}

// WithKnown returns a table together with clusters.
func (r *Resource) WithKnown(clusters []string) *Resource {
	if len(clusters) == 0 {
		return r
	}
	shell, err := newFragment(v3.ProxylessKnowing(r.Shell.Message(), clusters))
	if err != nil {
		return r
	}
	out := newResource(r.TypeURL, r.Name, shell)
	out.origin, out.knowing = r.origin, &knowing{r, clusters}
	return out
}
