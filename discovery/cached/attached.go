package cached

import (
	"runtime"
	"sync"
	"weak"
)

// Attached makes one value for each part of a configuration and keeps it as long as the
// part is reachable. The garbage collector removes the value together with the part. So no
// value is made twice for an unchanged part, and nobody has to clear anything. It is safe
// for concurrent use.
//
// The value must not hold the part, and making it must not panic.
type Attached[Part any, With comparable, Value any] struct {
	Max int // maximum number of values kept, 0 for no bound; values beyond it are made and not kept

	mu     sync.Mutex
	values map[attachment[Part, With]]*attachedValue[Value]
}

// attachment identifies a value: the part, and whatever else the value depends on.
type attachment[Part any, With comparable] struct {
	part weak.Pointer[Part]
	with With
}

type attachedValue[Value any] struct {
	once  sync.Once
	value Value
}

// Of returns the value of a part. The first caller makes it, and the others wait.
func (a *Attached[Part, With, Value]) Of(part *Part, with With, create func() Value) Value {
	v := a.find(part, with)
	if v == nil {
		return create()
	}
	v.once.Do(func() { v.value = create() })
	runtime.KeepAlive(part)
	return v.value
}

// find returns nil if there is no room for another value.
func (a *Attached[Part, With, Value]) find(part *Part, with With) *attachedValue[Value] {
	key := attachment[Part, With]{weak.Make(part), with}
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.values[key]
	if v != nil || a.Max > 0 && len(a.values) >= a.Max {
		return v
	}
	if a.values == nil {
		a.values = map[attachment[Part, With]]*attachedValue[Value]{}
	}
	v = &attachedValue[Value]{}
	a.values[key] = v
	runtime.AddCleanup(part, a.drop, key)
	return v
}

// Has reports whether there is a value, or one is being made.
func (a *Attached[Part, With, Value]) Has(part *Part, with With) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.values[attachment[Part, With]{weak.Make(part), with}] != nil
}

func (a *Attached[Part, With, Value]) drop(key attachment[Part, With]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.values, key)
}

func (a *Attached[Part, With, Value]) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.values)
}
