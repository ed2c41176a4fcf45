package etcd

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Txn implements store.Interface. It is optimistic: it applies the operations to a state,
// and writes the result on condition that the state is unchanged. Otherwise etcd's refusal
// includes the new state for another try. It ends when ctx ends, and it makes progress
// because each lost race is another writer's success.
//
// The first try may use a guess of the state. Only a write may rely on a guess, because
// etcd refuses it if the guess is wrong. Any other outcome is first confirmed with
// etcd.
func (s *Store) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if err := store.CheckOps(ops); err != nil {
		return nil, err
	}
	if err := store.CheckLimit(ops, s.limits.Ops); err != nil {
		return nil, err
	}
	if err := s.isOpen(ctx); err != nil {
		return nil, err
	}
	if len(ops) == 1 && ops[0].Change != nil {
		done, err := s.writers.take(ctx, ops[0].Key)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	w, err := s.plan(ops)
	if err != nil {
		return nil, err
	}
	w.by = store.AuthorOf(ctx)
	if !s.optimistic.fill(w) {
		err = s.ask(ctx, w)
	}
	for err == nil {
		var done []*schema.Object
		if done, err = s.try(ctx, w); done != nil {
			store.SetReplaced(ctx, w.current)
			return done, nil
		}
	}
	return nil, err
}

// try tries a write once. If it returns neither a result nor an error, the state was
// not the one that w used, and w now has the present state.
func (s *Store) try(ctx context.Context, w *write) ([]*schema.Object, error) {
	err := w.apply()
	if !w.asked && (err != nil || !w.changes()) {
		if right, err := s.confirm(ctx, w); !right {
			return nil, err
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !w.changes():
		return w.next, nil
	}
	if err := s.prepare(ctx, w); err != nil {
		if w.asked {
			return nil, err
		}
		return nil, s.ask(ctx, w) // A write that used a guess does not wait for room.
	}
	return s.commit(ctx, w)
}

// write is a transaction being tried. All slices are parallel to ops.
type write struct {
	ops     []store.Op
	layout  layout
	keys    []string
	current []*schema.Object // last known state in etcd, nil for none
	asked   bool             // current was read from etcd and is no guess
	// damaged are the unreadable values, for which current has a placeholder.
	damaged []*store.Unreadable
	next    []*schema.Object // the state to write, nil for none
	answers []*schema.Object // next, or the last state of a removed object
	values  [][]byte         // the encoding of answers
	records [][]byte         // records of the changes, nil if no history is kept

	by          store.Author
	transaction string
}

func (s *Store) plan(ops []store.Op) (*write, error) {
	w := &write{
		ops: ops, layout: s.keys, current: make([]*schema.Object, len(ops)),
		damaged: make([]*store.Unreadable, len(ops)), records: make([][]byte, len(ops)),
	}
	for _, op := range ops {
		key, ok := s.keys.of(op.Target())
		if !ok {
			return nil, &store.Error{Kind: store.ErrInvalid, Key: op.Target(), Detail: "no such kind"}
		}
		w.keys = append(w.keys, key)
	}
	return w, nil
}

// ask reads the present state.
func (s *Store) ask(ctx context.Context, w *write) error {
	if err := store.Overdue(ctx); err != nil {
		return err
	}
	resp, err := s.client.Txn(ctx).Then(w.reads()...).Commit()
	if err != nil {
		return translate(w.operation(), err, w.name())
	}
	return w.read(resp)
}

// confirm asks etcd whether the guess in w is right. If not, w has the present state
// afterwards.
func (s *Store) confirm(ctx context.Context, w *write) (right bool, err error) {
	guess, revisions := slices.Clone(w.current), w.revisions()
	if err := s.ask(ctx, w); err != nil {
		return false, err
	}
	if !slices.Equal(revisions, w.revisions()) {
		return false, nil
	}
	w.current = guess // The results may have the same pointers, which idle compares.
	return true, nil
}

// prepare creates the records of a write and makes room for it.
func (s *Store) prepare(ctx context.Context, w *write) error {
	if s.limits.History > 0 {
		if err := w.note(time.Now()); err != nil {
			return err
		}
	}
	return s.admit(ctx, w)
}

// name returns the key to name in an error about the whole transaction.
func (w *write) name() schema.Key {
	if len(w.ops) == 1 {
		return w.ops[0].Target()
	}
	return schema.Key{}
}

// operation names the write in such an error.
func (w *write) operation() string {
	if len(w.ops) == 1 {
		return string(w.ops[0].Verb)
	}
	return "transaction"
}

func (w *write) reads() []clientv3.Op {
	gets := make([]clientv3.Op, len(w.keys))
	for i, key := range w.keys {
		gets[i] = clientv3.OpGet(key)
	}
	return gets
}

// read sets the present state from the answers to reads.
func (w *write) read(resp *clientv3.TxnResponse) (err error) {
	w.asked = true
	for i, r := range resp.Responses {
		w.current[i], w.damaged[i] = nil, nil
		kvs := r.GetResponseRange().Kvs
		if len(kvs) == 0 {
			continue
		}
		revision := kvs[0].ModRevision
		if w.current[i], err = w.layout.object(kvs[0], revision); err == nil {
			continue
		}
		damage := w.layout.unreadable(kvs[0], err)
		w.damaged[i] = &damage
		if w.current[i], err = placeholder(w.ops[i].Target(), revision); err != nil {
			return store.AtIndex(err, i)
		}
	}
	return nil
}

// apply computes the result of the operations on the present state.
func (w *write) apply() error {
	w.next = make([]*schema.Object, len(w.ops))
	w.answers = make([]*schema.Object, len(w.ops))
	w.values = make([][]byte, len(w.ops))
	for i, op := range w.ops {
		out, err := w.evaluate(i, op)
		if err != nil {
			return store.AtIndex(err, i)
		}
		w.next[i] = out.Stored
		w.answers[i] = out.Answer
		w.values[i] = schema.WithChecksum(out.Answer.Encoded())
	}
	return nil
}

// evaluate computes the result of one operation. An unreadable value has no next state;
// only an update with a whole object can replace it.
func (w *write) evaluate(i int, op store.Op) (store.Outcome, error) {
	switch {
	case w.damaged[i] == nil || op.Verb != store.OpUpdate && op.Verb != store.OpApply:
		return op.Evaluate(w.current[i], w.by)
	case op.Change != nil:
		return store.Outcome{}, w.damaged[i].Err()
	}
	return replace(op, w.current[i], w.by)
}

func (w *write) idle(i int) bool { return w.next[i] != nil && w.next[i] == w.current[i] }

func (w *write) changes() bool {
	for i := range w.ops {
		if !w.idle(i) {
			return true
		}
	}
	return false
}

// commit writes if the state is the one that apply used. If it returns neither a result
// nor an error, the state was another one, and w now has the present state.
func (s *Store) commit(ctx context.Context, w *write) ([]*schema.Object, error) {
	conditions, changes := w.conditions(), append(w.puts(), s.keys.tick())
	if err := store.Overdue(ctx); err != nil {
		return nil, err
	}
	for i, key := range w.keys {
		if w.next[i] != nil && !w.idle(i) {
			s.pendingWrites.expect(key, w.next[i])
		}
	}
	resp, err := s.client.Txn(ctx).If(conditions...).Then(changes...).Else(w.reads()...).Commit()
	switch {
	case err != nil:
		return nil, unanswered(w.operation(), err, w.name())
	case !resp.Succeeded:
		s.optimistic.refused(w)
		return nil, w.read(resp)
	}
	results := w.results(&s.pendingWrites, resp.Header.Revision)
	s.optimistic.wrote(w, results, resp.Header.Revision)
	s.surplus.add(w)
	return results, nil
}

func (w *write) conditions() []clientv3.Cmp {
	cmps := make([]clientv3.Cmp, len(w.keys))
	for i, revision := range w.revisions() {
		cmps[i] = clientv3.Compare(clientv3.ModRevision(w.keys[i]), "=", revision)
	}
	return cmps
}

// revisions returns the revisions of the state that w uses, 0 for missing objects.
func (w *write) revisions() []int64 {
	out := make([]int64, len(w.keys))
	for i, o := range w.current {
		if o != nil {
			out[i] = o.Revision()
		}
	}
	return out
}

func (w *write) puts() []clientv3.Op {
	var ops []clientv3.Op
	for i, key := range w.keys {
		switch {
		case w.next[i] == nil:
			ops = append(ops, clientv3.OpDelete(key))
		case !w.idle(i):
			ops = append(ops, clientv3.OpPut(key, string(w.values[i])))
		}
		if w.records[i] != nil {
			ops = append(ops, clientv3.OpPut(w.layout.historyOf(key)+w.transaction, string(w.records[i])))
		}
	}
	if w.transaction == "" {
		ops = append(ops, w.layout.unrecorded())
	}
	return ops
}

func (w *write) results(pendingWrites *pendingWrites, revision int64) []*schema.Object {
	results := make([]*schema.Object, len(w.ops))
	for i := range w.ops {
		results[i] = w.current[i]
		if !w.idle(i) {
			results[i] = pendingWrites.wrote(w.keys[i], w.answers[i], revision)
		}
	}
	return results
}
