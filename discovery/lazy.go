package discovery

import (
	"sync"
	"sync/atomic"
	"weak"
)

// lazy is a value made once, by whoever needs it first; the others wait. A
// failure to make it is kept as well.
type lazy[T any] struct {
	once  sync.Once
	value atomic.Pointer[T]
	err   error
}

func (l *lazy[T]) get(create func() (*T, error)) (*T, error) {
	l.once.Do(func() {
		v, err := create()
		if err != nil {
			l.err = err
			return
		}
		l.value.Store(v)
	})
	return l.value.Load(), l.err
}

// peek is the value if it was made, else nil.
func (l *lazy[T]) peek() *T { return l.value.Load() }

// brief is a value that is easily made again. It is kept until the next garbage
// collection: whoever needs it at about the same time shares it, and what was
// needed once fills no memory.
type brief[T any] struct {
	mu   sync.Mutex
	last weak.Pointer[T]
}

func (b *brief[T]) get(create func() *T) *T {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.last.Value()
	if v == nil {
		v = create()
		b.last = weak.Make(v)
	}
	return v
}

// memo keeps up to max values by key. Beyond that, values are made again at
// each request: slower, but right, and bounded in memory.
type memo[V any] struct {
	max int

	mu     sync.RWMutex
	values map[string]V
}

func newMemo[V any](max int) *memo[V] { return &memo[V]{max: max, values: map[string]V{}} }

func (m *memo[V]) get(key string) (V, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.values[key]
	return v, ok
}

// put keeps v unless another came first, and returns the one that is kept.
func (m *memo[V]) put(key string, v V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, ok := m.values[key]; ok {
		return first
	}
	if len(m.values) < m.max {
		m.values[key] = v
	}
	return v
}
