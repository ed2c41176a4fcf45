package xds

import "github.com/pilot-api/pilot-api/envoy/v3"

// knowing is a table with clusters that it leads no call to.
type knowing struct {
	table *Resource
	known []string
}

// Table is the one that calls are routed by.
func (r *Resource) Table() *Resource {
	if r.knowing != nil {
		return r.knowing.table
	}
	return r
}

// LeadsTo are the clusters that a table leads calls to.
func (r *Resource) LeadsTo() []string { return v3.ProxylessLeadsTo(r.Shell.Message()) }

// Knows returns the clusters that a client has if it has the table.
func (r *Resource) Knows() []string {
	all := r.Table().LeadsTo()
	if r.knowing != nil {
		all = append(all, r.knowing.known...)
	}
	return all
}

// WithKnown is a table together with clusters.
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
