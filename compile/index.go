package compile

import (
	"slices"

	"github.com/pilot-api/pilot-api/compile/query"
)

// list is a slice that queries compare by identity, as an input. It is never empty,
// and never modified once it was read.
type list[T any] struct {
	items []*T
	read  bool
}

// listed returns the items of a list, which may be nil.
func (l *list[T]) listed() []*T {
	if l == nil {
		return nil
	}
	return l.items
}

// change replaces one value with another; either may be nil.
type change[T any] struct{ before, after *T }

// index holds values by name. Values with the same name are in the order of
// compare.
type index[K comparable, T any] struct {
	graph   *query.Graph
	input   *query.Input[K, *list[T]]
	names   func(*T) []K
	compare func(a, b *T) int
	now     map[K]*list[T]
	told    []func(name K, items []*T)
}

func newIndex[K comparable, T any](g *query.Graph, compare func(a, b *T) int, names func(*T) []K) *index[K, T] {
	return &index[K, T]{graph: g, input: query.NewInput[K, *list[T]](g), names: names, compare: compare, now: map[K]*list[T]{}}
}

// summarized returns an input that has only a summary of the values under each
// name, for queries that depend on nothing else. A summary that is the same as the
// present one does not replace it.
func summarized[K, V comparable, T any](x *index[K, T], same func(a, b V) bool, of func([]*T) V) *query.Input[K, V] {
	out := query.NewInput[K, V](x.graph)
	x.told = append(x.told, func(name K, items []*T) {
		if summary := of(items); !same(out.Value(name), summary) {
			out.Set(name, summary)
		}
	})
	return out
}

// under returns the values with a name. The slice is shared.
func (x *index[K, T]) under(rd *reader, name K) []*T {
	l := x.input.Get(rd.r, name)
	if l != nil {
		l.read = true
	}
	return l.listed()
}

// update applies changes. It rebuilds each affected list once, however many changes
// affect it.
func (x *index[K, T]) update(changes []change[T]) {
	gone, come := map[K]map[*T]bool{}, map[K][]*T{}
	for _, ch := range changes {
		if ch.before != nil {
			for _, name := range x.names(ch.before) {
				if gone[name] == nil {
					gone[name] = map[*T]bool{}
				}
				gone[name][ch.before] = true
			}
		}
		if ch.after != nil {
			for _, name := range x.names(ch.after) {
				if n := len(come[name]); n == 0 || come[name][n-1] != ch.after {
					come[name] = append(come[name], ch.after)
				}
			}
		}
	}
	for name := range gone {
		x.replace(name, gone[name], come[name])
	}
	for name := range come {
		if gone[name] == nil {
			x.replace(name, nil, come[name])
		}
	}
}

func (x *index[K, T]) replace(name K, gone map[*T]bool, come []*T) {
	items := x.without(x.unread(name, len(come)), gone)
	items = x.with(items, come)
	for _, tell := range x.told {
		tell(name, items)
	}
	if len(items) == 0 {
		delete(x.now, name)
		x.input.Set(name, nil)
		return
	}
	x.now[name] = &list[T]{items: items}
	x.input.Set(name, x.now[name])
}

// unread returns the items under a name in a slice that nobody has read and that
// has room for more. It copies only a list that was read: most names have many
// items and are hardly ever read.
func (x *index[K, T]) unread(name K, more int) []*T {
	now := x.now[name]
	if now == nil || !now.read {
		return now.listed()
	}
	return append(make([]*T, 0, len(now.items)+more), now.items...)
}

// without removes items from a list. It searches for a few items rather than look
// at all the others.
func (x *index[K, T]) without(items []*T, gone map[*T]bool) []*T {
	if len(gone) > len(items)/8 {
		return slices.DeleteFunc(items, func(item *T) bool { return gone[item] })
	}
	for item := range gone {
		at, _ := slices.BinarySearchFunc(items, item, x.compare)
		for at < len(items) && items[at] != item { // skip items that compare as equal
			at++
		}
		if at < len(items) {
			items = slices.Delete(items, at, at+1)
		}
	}
	return items
}

// with inserts items into a list at their places and moves the items behind them
// once.
func (x *index[K, T]) with(items, come []*T) []*T {
	slices.SortStableFunc(come, x.compare)
	end := len(items)
	items = append(items, come...)
	for n, item := range slices.Backward(come) {
		at, _ := slices.BinarySearchFunc(items[:end], item, x.compare)
		copy(items[at+n+1:], items[at:end])
		items[at+n], end = item, at
	}
	return items
}
