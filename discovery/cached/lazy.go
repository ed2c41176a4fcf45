package cached

import (
	"sync"
	"sync/atomic"
	"weak"
)

// Lazy makes its value once. The first caller makes it, and the others wait. An error is
// kept too.
type Lazy[T any] struct {
	once  sync.Once
	value atomic.Pointer[T]
	err   error
}

func (l *Lazy[T]) Get(create func() (*T, error)) (*T, error) {
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

// Peek returns the value if it was made, or nil.
func (l *Lazy[T]) Peek() *T { return l.value.Load() }

// Brief keeps a value that is cheap to make again until the next garbage collection. So
// callers at about the same time share the value, and it does not stay in memory after
// them.
type Brief[T any] struct {
	mu   sync.Mutex
	last weak.Pointer[T]
}

func (b *Brief[T]) Get(create func() *T) *T {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.last.Value()
	if v == nil {
		v = create()
		b.last = weak.Make(v)
	}
	return v
}

// Memo keeps up to max values by key. Further values are made again at each request:
// slower, but correct, and bounded in memory.
type Memo[V any] struct {
	max int

	mu     sync.RWMutex
	values map[string]V
}

func NewMemo[V any](max int) *Memo[V] { return &Memo[V]{max: max, values: map[string]V{}} }

func (m *Memo[V]) Get(key string) (V, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.values[key]
	return v, ok
}

// Put keeps v unless there is a value already, and returns the value that is kept.
func (m *Memo[V]) Put(key string, v V) V {
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
