package bridge

import "fmt"

// Resources are Answers in v3.
type Resources struct {
	Clusters, Listeners []any
	Routes              map[string]any // By the name of the table.
}

// Turn converts answers to v3. It puts endpoints into their clusters. A listener refers to
// the file with its routes, which is tableFile of the table.
func Turn(a *Answers, tableFile func(table string) string) (*Resources, error) {
	r := &Resources{Routes: map[string]any{}}
	var err error
	if r.Clusters, err = turnClusters(a.Clusters, a.Hosts); err != nil {
		return nil, fmt.Errorf("clusters%w", err)
	}
	if r.Listeners, err = turnListeners(a.Listeners, tableFile); err != nil {
		return nil, fmt.Errorf("listeners%w", err)
	}
	for name, text := range a.Routes {
		var t routeTable
		if err := read(text, &t); err != nil {
			return nil, err
		}
		if r.Routes[name], err = t.turn(name); err != nil {
			return nil, fmt.Errorf("routes/%s: %w", name, err)
		}
	}
	return r, nil
}
