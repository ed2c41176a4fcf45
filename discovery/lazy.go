package discovery

import (
	"sync"
	"sync/atomic"
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
