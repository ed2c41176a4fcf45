package mesh

import (
	"hash/maphash"
	"slices"
)

// table is an immutable map. Its next version shares everything with it except the
// paths to changed entries. The zero table is empty. It is implemented as a trie of
// the keys' hashes.
type table[K comparable, V any] struct{ root *node[K, V] }

// draft is the next version of a table while it is changed.
type draft[K comparable, V any] struct {
	root *node[K, V]
	by   *identity
}

// node is a leaf with some pairs, or an inner node.
type node[K comparable, V any] struct {
	by    *identity // the draft that made it and may modify it in place
	below *[fanOut]*node[K, V]
	pairs []pair[K, V]
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

const (
	fanOut     = 16
	hashDigits = 16 // digits of a 64-bit hash, in base fanOut
	leafSize   = 8  // maximum number of pairs of a leaf, unless the digits are used up
)

var hashSeed = maphash.MakeSeed()

// get returns the value for a key, or the zero value.
func (t table[K, V]) get(key K) (value V) {
	hash := maphash.Comparable(hashSeed, key)
	n := t.root
	for n != nil && n.below != nil {
		n, hash = n.below[hash%fanOut], hash/fanOut
	}
	if n != nil {
		if at := n.find(key); at >= 0 {
			return n.pairs[at].value
		}
	}
	return value
}

func (t table[K, V]) draft() *draft[K, V] { return &draft[K, V]{t.root, new(identity)} }

// done ends the draft, which must not be changed afterwards.
func (d *draft[K, V]) done() table[K, V] {
	d.by = nil
	return table[K, V]{d.root}
}

func (d *draft[K, V]) get(key K) V { return table[K, V]{d.root}.get(key) }

func (d *draft[K, V]) set(key K, value V) {
	leaf, depth := d.leaf(key)
	if at := leaf.find(key); at >= 0 {
		leaf.pairs[at].value = value
		return
	}
	leaf.pairs = append(leaf.pairs, pair[K, V]{key, value})
	if len(leaf.pairs) > leafSize && depth < hashDigits {
		d.split(leaf, depth)
	}
}

func (d *draft[K, V]) remove(key K) {
	leaf, _ := d.leaf(key)
	if at := leaf.find(key); at >= 0 {
		leaf.pairs = slices.Delete(leaf.pairs, at, at+1)
	}
}

// leaf returns the leaf for a key. The draft may modify it.
func (d *draft[K, V]) leaf(key K) (leaf *node[K, V], depth int) {
	hash := maphash.Comparable(hashSeed, key)
	at := &d.root
	for {
		n := d.own(*at)
		*at = n
		if n.below == nil {
			return n, depth
		}
		at, hash, depth = &n.below[hash%fanOut], hash/fanOut, depth+1
	}
}

// own returns the node, or a copy if other versions share it.
func (d *draft[K, V]) own(n *node[K, V]) *node[K, V] {
	switch {
	case n == nil:
		return &node[K, V]{by: d.by}
	case n.by == d.by:
		return n
	}
	c := &node[K, V]{by: d.by, pairs: slices.Clone(n.pairs)}
	if n.below != nil {
		below := *n.below
		c.below = &below
	}
	return c
}

func (d *draft[K, V]) split(n *node[K, V], depth int) {
	pairs := n.pairs
	n.below, n.pairs = &[fanOut]*node[K, V]{}, nil
	for _, p := range pairs {
		digit := maphash.Comparable(hashSeed, p.key) >> (4 * depth) % fanOut
		at := &n.below[digit]
		*at = d.own(*at)
		(*at).pairs = append((*at).pairs, p)
	}
}

func (n *node[K, V]) find(key K) int {
	return slices.IndexFunc(n.pairs, func(p pair[K, V]) bool { return p.key == key })
}
