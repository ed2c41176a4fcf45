// Package query caches computed values until something that they depend on changes.
//
// An Input is set from outside. A Query computes its result from inputs and other
// queries. A computation only has to read them: the package records each read. When
// a value that was read changes, directly or through other queries, the next reader
// recomputes the result. If the new result equals the old one, the old one is kept,
// and its dependents stay valid. So the cost of a change depends only on what the
// change affects.
//
//	hosts := query.NewInput[string, *Service](g)
//	route := query.New(g, reflect.DeepEqual, func(r *query.Reader, name string) *Route {
//		return routeTo(hosts.Get(r, name))
//	})
//
// A function must be pure except for what it reads through its Reader. It must not
// read its own result, directly or through other queries. Nobody may modify its
// results. When Do returns, it drops each value that no kept result depends on.
package query

import (
	"runtime"
	"sync"
)

// Graph holds inputs and results that depend on each other. Only one goroutine at a
// time may use its inputs and queries; Do ensures this.
type Graph struct {
	mu      sync.Mutex
	clock   int64 // counts changes of values
	runs    int64 // counts computations
	read    int64 // counts what they read
	epoch   int64 // counts comparisons of what was read
	garbage []*node
	reads   []*node // reads of the running computations; those of a nested computation follow those of its reader

	tally   *tally   // number of inputs and results
	attempt *attempt // the running attempt, or nil
}

// NewGraph returns an empty graph without a bound.
func NewGraph() *Graph { return NewGraphWithin(NewQuota(0)) }

// NewGraphWithin returns an empty graph whose values count against a Quota.
func NewGraphWithin(q *Quota) *Graph {
	g := &Graph{tally: &tally{quota: q}}
	runtime.AddCleanup(g, (*tally).end, g.tally)
	return g
}

// Do calls do while no other goroutine uses the graph. do may set inputs and read results.
// A value that do reads stays only if it is kept or if a kept result depends on it. If a
// query panics, Do passes the panic on, and the next reader computes that query.
func (g *Graph) Do(do func(r *Reader)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.collect()
	defer func() { g.reads = g.reads[:0] }()
	do(&Reader{graph: g})
}

// Runs returns how many results have been computed so far. Tests and metrics use
// it.
func (g *Graph) Runs() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs
}

// Reads returns how many times computations have read a value so far.
func (g *Graph) Reads() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.read
}

// Size returns the number of values and results, including those known to be
// absent. It does not wait for Do.
func (g *Graph) Size() int { return int(g.tally.size.Load()) }

// Reader is the running computation. It is valid until that computation ends.
type Reader struct {
	graph *Graph
	from  int // where its own reads begin in the graph's reads, which contain repetitions
}

// entry is the value of a table under a key.
type entry interface {
	// compute computes the result and reports whether it differs from the last one.
	compute(*Reader) (changed bool)
	// forget removes the entry from its table.
	forget()
	// doubt is called when a kept result becomes suspect.
	doubt()
}

// node is an input or a result, of any type.
type node struct {
	graph *Graph
	entry entry

	state   state // always fresh for an input
	running bool
	dropped bool
	kept    bool // by a call of Keep or, for an input, because it has a value
	changed int64
	checked int64
	reads   []*node // nodes that the last computation read, each once
	doubts  []*node // the reads that are suspect or have changed since
	readers readers
	mark    int64 // the last epoch that marked this node
}

// state is the state of a result. A result that reads one that is not fresh is not
// fresh either.
type state uint8

const (
	unknown state = iota // must be computed
	suspect              // something that it depends on has changed
	fresh
)

// read brings a value up to date and records the read.
func (r *Reader) read(n *node) {
	n.refresh()
	r.graph.read++
	r.graph.step()
	r.graph.reads = append(r.graph.reads, n)
}

// begin registers a node that was added to its table. The node is collected unless
// something comes to depend on it, even if its computation panics.
func (g *Graph) begin(n *node) {
	n.graph = g
	g.tally.add(1)
	g.garbage = append(g.garbage, n)
	g.admit()
}

func (n *node) refresh() {
	if n.state == fresh {
		return
	}
	if n.running {
		panic("query: a result depends on itself")
	}
	if n.state == suspect && n.stands() {
		n.settle()
		return
	}
	n.run()
}

// stands reports whether every value that was read is unchanged. It looks only at
// the doubts.
func (n *node) stands() bool {
	n.orderDoubts()
	for _, read := range n.doubts {
		if read.refresh(); read.changed > n.checked {
			return false
		}
	}
	return true
}

// orderDoubts sorts the doubts in reading order, each once: a later value may have
// been read only because of an earlier one.
func (n *node) orderDoubts() {
	if len(n.doubts) < 2 {
		return
	}
	g := n.graph
	g.epoch++
	for _, doubt := range n.doubts {
		doubt.mark = g.epoch
	}
	n.doubts = n.doubts[:0]
	for _, read := range n.reads {
		if read.mark == g.epoch {
			n.doubts = append(n.doubts, read)
		}
	}
}

// settle marks the value as up to date.
func (n *node) settle() { n.state, n.checked, n.doubts = fresh, n.graph.clock, nil }

func (n *node) run() {
	g := n.graph
	n.state, n.running = unknown, true
	r := &Reader{graph: g, from: len(g.reads)}
	defer func() { n.running, g.reads = false, g.reads[:r.from] }()
	g.runs++
	g.step()
	if n.entry.compute(r) {
		n.changes()
	}
	n.depend(g.reads[r.from:])
	n.settle()
}

func (n *node) changes() {
	n.graph.clock++
	n.changed = n.graph.clock
}

// depend records the reads of the last computation.
func (n *node) depend(reads []*node) {
	g := n.graph
	g.epoch++
	once := make([]*node, 0, len(reads))
	for _, read := range reads {
		if read.mark == g.epoch {
			continue
		}
		read.mark = g.epoch
		once = append(once, read)
		read.readers.add(n)
	}
	for _, before := range n.reads {
		if before.mark != g.epoch {
			before.lose(n)
		}
	}
	n.reads = once
}

// lose removes a reader.
func (n *node) lose(reader *node) {
	if n.readers.remove(reader); n.readers.len() == 0 && !n.kept {
		n.graph.garbage = append(n.graph.garbage, n)
	}
}

// spread makes everything that depends on n suspect.
func (n *node) spread() {
	for reader := range n.readers.all {
		reader.mistrust(n)
	}
}

// mistrust records that a value that was read may have changed. A result with more
// doubts than reads, as one that nobody has read for long, becomes unknown and is
// recomputed.
func (n *node) mistrust(read *node) {
	switch {
	case n.state == unknown:
		return
	case len(n.doubts) > len(n.reads):
		n.state, n.doubts = unknown, nil
		return
	}
	n.doubts = append(n.doubts, read)
	if n.state == fresh {
		n.state = suspect
		if n.kept {
			n.entry.doubt()
		}
		n.spread()
	}
}

// collect drops the nodes that nothing depends on.
func (g *Graph) collect() {
	for len(g.garbage) > 0 {
		last := len(g.garbage) - 1
		n := g.garbage[last]
		g.garbage = g.garbage[:last]
		if n.readers.len() > 0 || n.kept || n.dropped {
			continue
		}
		n.entry.forget()
		n.dropped = true
		g.tally.add(-1)
		for _, read := range n.reads {
			read.lose(n)
		}
		n.reads = nil
	}
}

// keep sets whether the value stays without readers.
func (n *node) keep(kept bool) {
	if n.kept = kept; !kept && n.readers.len() == 0 {
		n.graph.garbage = append(n.graph.garbage, n)
	}
}
