// Package query keeps what was computed until something that it was computed
// from changes.
//
// An Input is set from outside. A Query computes its result from inputs and
// other queries, and reading them is all that it has to do: what it read is
// noted, and a change of that, however far away, has it computed again by
// whoever needs it next. If the new result equals the old one it is the old
// one, and what depends on it stays as it is. So a change costs what it
// concerns.
//
//	hosts := query.NewInput[string, *Service](g)
//	route := query.New(g, reflect.DeepEqual, func(r *query.Reader, name string) *Route {
//		return routeTo(hosts.Get(r, name))
//	})
//
// A function must be pure but for what it reads by its Reader, must not read
// itself through others, and its results must not be changed by anybody. What
// no kept result depends on is dropped when Do returns.
package query

import (
	"runtime"
	"sync"
)

// Graph holds the inputs and results that depend on each other. Its methods,
// and those of its inputs and queries, are for one goroutine at a time, which
// Do sees to.
type Graph struct {
	mu      sync.Mutex
	clock   int64 // counts changes of values
	runs    int64 // counts computations
	read    int64 // counts what they read
	epoch   int64 // counts comparisons of what was read
	garbage []*node
	reads   []*node // of the computations that are going on, those of each behind those of who needs it

	tally   *tally   // of inputs and results
	attempt *attempt // that is going on, nil for none
}

// NewGraph makes an empty one without a bound.
func NewGraph() *Graph { return NewGraphWithin(NewQuota(0)) }

// NewGraphWithin makes an empty one whose values count in a Quota.
func NewGraphWithin(q *Quota) *Graph {
	g := &Graph{tally: &tally{quota: q}}
	runtime.AddCleanup(g, (*tally).end, g.tally)
	return g
}

// Do has do set inputs and read results while nobody else does. What it reads
// stays only if it is kept, or something kept depends on it. A panic in a
// query is passed on, and leaves that query to be computed by the next reader.
func (g *Graph) Do(do func(r *Reader)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.collect()
	defer func() { g.reads = g.reads[:0] }()
	do(&Reader{graph: g})
}

// Runs is how many results have been computed so far, for tests and metrics.
func (g *Graph) Runs() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs
}

// Reads is how often a computation has read a value so far.
func (g *Graph) Reads() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.read
}

// Size is how many values and results there are, those included that are known
// to be none. It does not wait for Do.
func (g *Graph) Size() int { return int(g.tally.size.Load()) }

// Reader is the computation that is going on. It is good until that ends.
type Reader struct {
	graph *Graph
	from  int // where in the graph's reads its own begin, with repetitions
}

// entry is what a table has under a key.
type entry interface {
	// compute the result, and tell whether it is another one.
	compute(*Reader) (changed bool)
	// forget takes it out of the table.
	forget()
	// doubt is the first one of a result that is kept.
	doubt()
}

// node is an input or a result, whatever its type.
type node struct {
	graph *Graph
	of    entry

	state   state // of an input always fresh
	running bool
	dropped bool
	kept    bool // by a call of Keep or, for an input, because it has a value
	changed int64
	checked int64
	reads   []*node // by the last computation, each once
	doubts  []*node // of those that were read, what is suspect or has changed since
	readers readers
	mark    int64 // the last epoch that met it
}

// state of a result. What reads a result that is not fresh is not fresh either.
type state uint8

const (
	unknown state = iota // must be computed
	suspect              // something that it depends on has changed
	fresh
)

// read brings a value up to date, and notes that it was read.
func (r *Reader) read(n *node) {
	n.refresh()
	r.graph.read++
	r.graph.step()
	r.graph.reads = append(r.graph.reads, n)
}

// begin takes in a node that is in its table now. It goes again unless something
// comes to depend on it, also where its computation panics.
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

// stands reports whether all that was read has the value that it had. What is
// not in doubt is not looked at.
func (n *node) stands() bool {
	n.orderDoubts()
	for _, read := range n.doubts {
		if read.refresh(); read.changed > n.checked {
			return false
		}
	}
	return true
}

// orderDoubts puts them in the order of reading, each once: what was read later
// may have been asked for only because of what was read before.
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

// settle takes note that the value is that of now.
func (n *node) settle() { n.state, n.checked, n.doubts = fresh, n.graph.clock, nil }

func (n *node) run() {
	g := n.graph
	n.state, n.running = unknown, true
	r := &Reader{graph: g, from: len(g.reads)}
	defer func() { n.running, g.reads = false, g.reads[:r.from] }()
	g.runs++
	g.step()
	if n.of.compute(r) {
		n.changes()
	}
	n.depend(g.reads[r.from:])
	n.settle()
}

func (n *node) changes() {
	n.graph.clock++
	n.changed = n.graph.clock
}

// depend takes note of what the last computation read.
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

// lose takes a reader away.
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

// mistrust takes note that something that was read may have another value. One
// with more doubts than reads, as nobody asked for long, is computed anyway.
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
			n.of.doubt()
		}
		n.spread()
	}
}

// collect drops what nobody depends on.
func (g *Graph) collect() {
	for len(g.garbage) > 0 {
		last := len(g.garbage) - 1
		n := g.garbage[last]
		g.garbage = g.garbage[:last]
		if n.readers.len() > 0 || n.kept || n.dropped {
			continue
		}
		n.of.forget()
		n.dropped = true
		g.tally.add(-1)
		for _, read := range n.reads {
			read.lose(n)
		}
		n.reads = nil
	}
}

// keep sets whether the value stays though nobody reads it.
func (n *node) keep(kept bool) {
	if n.kept = kept; !kept && n.readers.len() == 0 {
		n.graph.garbage = append(n.graph.garbage, n)
	}
}
