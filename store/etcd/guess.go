package etcd

import (
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// maxWritten bounds the writes that are remembered until they are seen.
const maxWritten = 4096

// guesses are about what etcd has now. A right one spares a write a round trip;
// a wrong one costs what asking would have cost, and a refused proposal.
type guesses struct {
	peek func(schema.Key) *schema.Object

	mu sync.Mutex
	// written are the revisions of this store's own writes that peek may not
	// know yet. Without them whoever changes one object again and again
	// would always guess wrong. What is forgotten only makes guesses worse.
	written map[schema.Key]int64
}

// Guess makes writes begin with what peek says of an object: its state at any
// time, as read from etcd, or nil when nothing is known. peek must answer at once. To be
// called before the first write and the first watch.
func (s *Store) Guess(peek func(schema.Key) *schema.Object) { s.guesses.peek = peek }

// fill makes a guess for a whole transaction, if it can: creates most likely
// find nothing.
func (g *guesses) fill(w *write) bool {
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

func (g *guesses) of(key schema.Key) *schema.Object {
	if g.peek == nil {
		return nil
	}
	obj := g.peek(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	if obj == nil || obj.Revision() < g.written[key] {
		return nil
	}
	delete(g.written, key)
	return obj
}

// known is the object of a key if it is the one that etcd had at a revision.
func (g *guesses) known(key schema.Key, kv *mvccpb.KeyValue) *schema.Object {
	if g.peek == nil {
		return nil
	}
	if obj := g.peek(key); obj != nil && obj.Revision() == kv.ModRevision && obj.IsEncodedAs(kv.Value) {
		return obj
	}
	return nil
}

func (g *guesses) wrote(w *write, revision int64) {
	if g.peek == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.written == nil || len(g.written)+len(w.ops) > maxWritten {
		g.written = make(map[schema.Key]int64)
	}
	for _, op := range w.ops {
		g.written[op.Target()] = max(g.written[op.Target()], revision)
	}
}
