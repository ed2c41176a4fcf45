package query

import (
	"iter"
	"maps"
	"slices"
)

// Input is a table of values that are set from outside. A key without a value
// has the zero value, and whoever asked for it hears of it when it gets one.
type Input[K, V comparable] struct {
	graph *Graph
	cells map[K]*given[K, V]
}

// cell is a value with what depends on it.
type cell[K comparable, V any] struct {
	node
	key   K
	value V
}

// given is the cell of an input.
type given[K, V comparable] struct {
	cell[K, V]
	in *Input[K, V]
}

func (c *given[K, V]) compute(*Reader) bool { return false }
func (c *given[K, V]) forget()              { delete(c.in.cells, c.key) }
func (c *given[K, V]) doubt()               {}

// NewInput makes an empty table.
func NewInput[K, V comparable](g *Graph) *Input[K, V] {
	return &Input[K, V]{graph: g, cells: map[K]*given[K, V]{}}
}

func (in *Input[K, V]) cell(key K) *given[K, V] {
	c := in.cells[key]
	if c == nil {
		c = &given[K, V]{in: in}
		c.of, c.key, c.state = c, key, fresh
		in.cells[key] = c
		in.graph.begin(&c.node)
	}
	return c
}

// Set a value; the zero value takes the key out. What depends on it is doubted
// unless the value is the one that is there.
func (in *Input[K, V]) Set(key K, value V) {
	var none V
	c := in.cell(key)
	if c.value != value {
		c.value = value
		c.changes()
		c.spread()
	}
	c.keep(value != none)
}

// Get a value.
func (in *Input[K, V]) Get(r *Reader, key K) V {
	c := in.cell(key)
	r.read(&c.node)
	return c.value
}

// Query is a function whose results are kept, by the key that it is given.
type Query[K comparable, V any] struct {
	graph   *Graph
	same    func(a, b V) bool
	compute func(r *Reader, key K, last V) V
	cells   map[K]*result[K, V]
	doubted map[K]struct{} // of the results that are kept
}

// result is the cell of a query.
type result[K comparable, V any] struct {
	cell[K, V]
	query *Query[K, V]
}

func (c *result[K, V]) compute(r *Reader) bool {
	value := c.query.compute(r, c.key, c.value)
	if c.changed > 0 && c.query.same(c.value, value) {
		return false
	}
	c.value = value
	return true
}

func (c *result[K, V]) forget() { delete(c.query.cells, c.key) }
func (c *result[K, V]) doubt()  { c.query.doubted[c.key] = struct{}{} }

// New makes a query. Of two results that are the same the older one stays.
func New[K comparable, V any](g *Graph, same func(a, b V) bool, compute func(r *Reader, key K) V) *Query[K, V] {
	return NewReusing(g, same, func(r *Reader, key K, _ V) V { return compute(r, key) })
}

// NewReusing makes a query that is given its last result too, to take over what
// is as it was; the zero value at first. Nothing else may depend on that.
func NewReusing[K comparable, V any](g *Graph, same func(a, b V) bool, compute func(r *Reader, key K, last V) V) *Query[K, V] {
	return &Query[K, V]{graph: g, same: same, compute: compute, cells: map[K]*result[K, V]{}, doubted: map[K]struct{}{}}
}

func (q *Query[K, V]) cell(key K) *result[K, V] {
	c := q.cells[key]
	if c == nil {
		c = &result[K, V]{query: q}
		c.of, c.key = c, key
		q.cells[key] = c
		q.graph.begin(&c.node)
	}
	return c
}

// Get the result for a key, computed if it must be.
func (q *Query[K, V]) Get(r *Reader, key K) V {
	c := q.cell(key)
	r.read(&c.node)
	return c.value
}

// Keep is Get, and the result stays, whoever depends on it, until Drop.
func (q *Query[K, V]) Keep(r *Reader, key K) V {
	c := q.cell(key)
	c.kept = true
	r.read(&c.node)
	delete(q.doubted, key)
	return c.value
}

// Doubted are the keys of results that are kept and may be others than when they
// were last asked for. No other one is.
func (q *Query[K, V]) Doubted() []K { return slices.Collect(maps.Keys(q.doubted)) }

// Doubt has keys be among those doubted until they are asked for.
func (q *Query[K, V]) Doubt(keys iter.Seq[K]) {
	for key := range keys {
		q.doubted[key] = struct{}{}
	}
}

// Drop lets go of a result that was kept. It is there still as long as a kept
// one depends on it.
func (q *Query[K, V]) Drop(key K) {
	if c := q.cells[key]; c != nil && c.kept {
		c.keep(false)
	}
	delete(q.doubted, key)
}

// Len is how many results there are.
func (q *Query[K, V]) Len() int { return len(q.cells) }
