package query

import (
	"iter"
	"maps"
	"slices"
)

// Input is a table of values that are set from outside. A key without a value has
// the zero value; its readers are invalidated when it gets one.
type Input[K, V comparable] struct {
	graph *Graph
	cells map[K]*given[K, V]
}

// cell is a value with its node.
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

// NewInput returns an empty table.
func NewInput[K, V comparable](g *Graph) *Input[K, V] {
	return &Input[K, V]{graph: g, cells: map[K]*given[K, V]{}}
}

func (in *Input[K, V]) cell(key K) *given[K, V] {
	c := in.cells[key]
	if c == nil {
		c = &given[K, V]{in: in}
		c.entry, c.key, c.state = c, key, fresh
		in.cells[key] = c
		in.graph.begin(&c.node)
	}
	return c
}

// Set sets a value; the zero value removes the key. If the value differs from the
// present one, its dependents become suspect.
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

// Get returns the value for a key.
func (in *Input[K, V]) Get(r *Reader, key K) V {
	c := in.cell(key)
	r.read(&c.node)
	return c.value
}

// Value returns the value for a key without recording a read. It is for code that sets
// values and compares them first.
func (in *Input[K, V]) Value(key K) V {
	if c := in.cells[key]; c != nil {
		return c.value
	}
	var none V
	return none
}

// Query is a function whose results are cached by key.
type Query[K comparable, V any] struct {
	graph   *Graph
	same    func(a, b V) bool
	compute func(r *Reader, key K, last V) V
	cells   map[K]*result[K, V]
	doubted map[K]struct{} // keys of kept results that are suspect
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

// New returns a query. If same reports that a new result equals the old one, the
// old one stays.
func New[K comparable, V any](g *Graph, same func(a, b V) bool, compute func(r *Reader, key K) V) *Query[K, V] {
	return NewReusing(g, same, func(r *Reader, key K, _ V) V { return compute(r, key) })
}

// NewReusing returns a query whose function also receives its last result, so that
// it can reuse unchanged parts. The last result is the zero value at first. The new
// result must not depend on it in any other way.
func NewReusing[K comparable, V any](g *Graph, same func(a, b V) bool, compute func(r *Reader, key K, last V) V) *Query[K, V] {
	return &Query[K, V]{graph: g, same: same, compute: compute, cells: map[K]*result[K, V]{}, doubted: map[K]struct{}{}}
}

func (q *Query[K, V]) cell(key K) *result[K, V] {
	c := q.cells[key]
	if c == nil {
		c = &result[K, V]{query: q}
		c.entry, c.key = c, key
		q.cells[key] = c
		q.graph.begin(&c.node)
	}
	return c
}

// Get returns the result for a key and computes it if necessary.
func (q *Query[K, V]) Get(r *Reader, key K) V {
	c := q.cell(key)
	r.read(&c.node)
	return c.value
}

// Keep is like Get, but the result stays until Drop, even if nothing depends on it.
func (q *Query[K, V]) Keep(r *Reader, key K) V {
	c := q.cell(key)
	c.kept = true
	r.read(&c.node)
	delete(q.doubted, key)
	return c.value
}

// Doubted returns the keys of the kept results that may have changed since they
// were last read. No other kept result has changed.
func (q *Query[K, V]) Doubted() []K { return slices.Collect(maps.Keys(q.doubted)) }

// Doubt adds keys to those doubted until they are next kept.
func (q *Query[K, V]) Doubt(keys iter.Seq[K]) {
	for key := range keys {
		q.doubted[key] = struct{}{}
	}
}

// Drop releases a kept result. It stays as long as a kept result depends on it.
func (q *Query[K, V]) Drop(key K) {
	if c := q.cells[key]; c != nil && c.kept {
		c.keep(false)
	}
	delete(q.doubted, key)
}

// Len returns the number of results.
func (q *Query[K, V]) Len() int { return len(q.cells) }
