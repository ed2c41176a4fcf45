package etcd

import (
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Limits of the remembered writes that peek has not seen yet: their number, and their bytes
// of JSON.
const (
	maxWritten  = 512
	writtenSize = 1 << 20
)

// optimisticState predicts what etcd has now. A right guess saves a write a round trip. A
// wrong one costs as much as reading first, and a refused proposal.
type optimisticState struct {
	peek func(schema.Key) *schema.Object

	mu sync.Mutex
	// written holds the results of this store's own writes that peek may not know yet.
	// Without it a client that changes one object repeatedly would always have to read
	// first. Dropping entries only makes guesses worse.
	written map[schema.Key]written
	size    int // of the JSON of all of them, in bytes
}

// written is an object after a write; obj is nil if it was deleted.
type written struct {
	obj      *schema.Object
	revision int64
}

// Guess makes writes start from the object that peek returns. This is a state of any age
// that was read from etcd, or nil if it is unknown. peek must return immediately. Call
// Guess before the first write and the first watch.
func (s *Store) Guess(peek func(schema.Key) *schema.Object) { s.optimistic.peek = peek }

// fill guesses the state for a whole transaction, if it can. It assumes that a create
// finds no object.
func (g *optimisticState) fill(w *write) bool {
	for i, op := range w.ops {
		if op.Verb == store.OpCreate {
			continue
		}
		if w.current[i] = g.of(op.Target()); w.current[i] == nil {
			return false
		}
	}
	return true
}

func (g *optimisticState) of(key schema.Key) *schema.Object {
	if g.peek == nil {
		return nil
	}
	seen := g.peek(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	own, wrote := g.written[key]
	switch {
	case !wrote:
		return seen
	case seen == nil || seen.Revision() < own.revision:
		return own.obj
	}
	g.forget(key)
	return seen
}

func (g *optimisticState) forget(key schema.Key) {
	g.size -= g.written[key].length()
	delete(g.written, key)
}

func (w written) length() int {
	if w.obj == nil {
		return 0
	}
	return len(w.obj.JSON())
}

// known returns the object of a key if it is the one that etcd had at a revision.
func (g *optimisticState) known(key schema.Key, kv *mvccpb.KeyValue) *schema.Object {
	if g.peek == nil {
		return nil
	}
	if obj := g.peek(key); obj != nil && obj.Revision() == kv.ModRevision && isStoredAs(obj, kv.Value) {
		return obj
	}
	return nil
}

// refused drops the guesses of a write that etcd refused.
func (g *optimisticState) refused(w *write) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, op := range w.ops {
		g.forget(op.Target())
	}
}

// wrote remembers what etcd has after a write.
func (g *optimisticState) wrote(w *write, results []*schema.Object, revision int64) {
	if g.peek == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, op := range w.ops {
		own := written{revision: revision}
		if w.next[i] != nil {
			own = written{results[i], results[i].Revision()}
		}
		g.remember(op.Target(), own)
	}
}

func (g *optimisticState) remember(key schema.Key, own written) {
	if g.written[key].revision > own.revision {
		return
	}
	g.forget(key)
	if g.written == nil || len(g.written) >= maxWritten || g.size+own.length() > writtenSize {
		g.written, g.size = make(map[schema.Key]written), 0
	}
	g.written[key] = own
	g.size += own.length()
}
