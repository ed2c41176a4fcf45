package mesh

import iradix "github.com/hashicorp/go-immutable-radix/v2"

// table is an immutable map from texts. Its next version shares everything with it
// except the paths to changed entries. The zero table is empty.
type table[V any] struct{ tree *iradix.Tree[V] }

// draft is the next version of a table while it is changed.
type draft[V any] struct{ txn *iradix.Txn[V] }

// get returns the value for a key, or the zero value.
func (t table[V]) get(key string) (value V) {
	if t.tree != nil {
		value, _ = t.tree.Get([]byte(key))
	}
	return value
}

func (t table[V]) draft() draft[V] {
	if t.tree == nil {
		t.tree = iradix.New[V]()
	}
	return draft[V]{t.tree.Txn()}
}

func (d draft[V]) get(key string) (value V) {
	value, _ = d.txn.Get([]byte(key))
	return value
}

func (d draft[V]) set(key string, value V) { d.txn.Insert([]byte(key), value) }

func (d draft[V]) remove(key string) { d.txn.Delete([]byte(key)) }

// done ends the draft, which must not be changed afterwards. Nothing watches nodes, so
// nobody is notified.
func (d draft[V]) done() table[V] { return table[V]{d.txn.CommitOnly()} }
