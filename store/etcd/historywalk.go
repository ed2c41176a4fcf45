package etcd

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// touchedWalk iterates over the objects of a scope of one kind that were put since a
// revision, or that have a record since. Its order is that of the keys with a slash
// appended. Keys of records have the same order. Keys of objects do not: "a" sorts
// before "a-b" there, and "a-b/" before "a/". The walk keeps only a page of each in
// memory, however many there are.
type touchedWalk struct {
	keys  layout
	scope store.Scope
	// objects and records are names of objects, each in the order of the walk.
	objects, records *orderedNames
}

// walkTouched starts a walk after a key. It starts with the first object if the key is
// empty or of another kind.
func (s *Store) walkTouched(ctx context.Context, scope store.Scope, p past, after schema.Key) *touchedWalk {
	objects := s.keys.span(scope)
	prefix := s.keys.history + strings.TrimPrefix(objects.from, s.keys.objects)
	if scope.Name != "" {
		prefix += "/" // Excludes names that begin with this one.
	}
	records := span{prefix, clientv3.GetPrefixRangeEnd(prefix)}
	last, shorter := "", []string(nil)
	if after.Kind == scope.Kind.Kind {
		last, _ = s.keys.of(after)
		shorter = shorterNames(last)
		objects = objects.after(last)
		records.from = min(max(records.from, clientv3.GetPrefixRangeEnd(s.keys.historyOf(last))), records.to)
	}
	return &touchedWalk{
		keys: s.keys, scope: scope,
		objects: &orderedNames{keyReader: keyReader{store: s, ctx: ctx, rest: objects, past: p}, after: last, shorter: shorter},
		records: &orderedNames{keyReader: keyReader{store: s, ctx: ctx, rest: records, past: p}, after: last},
	}
}

// shorterNames returns the keys that come after a key in the order of the walk and
// before it in the order of etcd, the longest last. They are the key's prefixes that
// end before a character less than a slash.
func shorterNames(key string) (out []string) {
	start := strings.LastIndexByte(key, '/') + 2
	for i := start; i < len(key); i++ {
		if key[i] < '/' {
			out = append(out, key[:i])
		}
	}
	return out
}

// next returns the next name, "" after the last.
func (w *touchedWalk) next() (string, error) {
	for {
		name, err := w.merged()
		if err != nil || name == "" {
			return "", err
		}
		if key, ok := w.keys.parse(name); ok && w.scope.Contains(key) {
			return name, nil
		}
	}
}

// merged returns the lesser of the next names of both and removes it from both.
func (w *touchedWalk) merged() (string, error) {
	object, err := w.objects.peek()
	if err != nil {
		return "", err
	}
	record, err := w.records.peek()
	if err != nil {
		return "", err
	}
	name := object
	if object == "" || record != "" && comesBefore(record, object) {
		name = record
	}
	w.objects.drop(name)
	w.records.drop(name)
	return name, nil
}

// comesBefore reports whether a comes before b in the order of the walk.
func comesBefore(a, b string) bool { return a+"/" < b+"/" }

// orderedNames puts the names of objects whose keys were put since into the order of
// the walk. A name waits for the names that begin with it, so at most as many names
// wait as a name has characters.
type orderedNames struct {
	keyReader
	after string // The walk starts after it.
	// shorter are candidates that etcd sorts before the keys of the reader, the longest
	// last. They are looked up first.
	shorter []string
	waiting []string // The last one is the next.
	ready   string
	ahead   string // read, and not in waiting yet
	newest  string // the newest name read
}

func (o *orderedNames) drop(name string) {
	if o.ready == name {
		o.ready = ""
	}
}

// peek returns the next name, "" at the end.
func (o *orderedNames) peek() (string, error) {
	for o.ready == "" {
		if err := o.fill(); err != nil {
			return "", err
		}
		last := len(o.waiting) - 1
		switch {
		case o.ahead == "" && last < 0:
			return "", nil
		case last >= 0 && (o.ahead == "" || comesBefore(o.waiting[last], o.ahead)):
			o.ready, o.waiting = o.waiting[last], o.waiting[:last]
		default:
			o.waiting, o.ahead = append(o.waiting, o.ahead), ""
		}
	}
	return o.ready, nil
}

// fill reads one name ahead, if there is another.
func (o *orderedNames) fill() error {
	for ; len(o.shorter) > 0; o.shorter = o.shorter[1:] {
		touched, err := o.isTouched(o.shorter[0])
		if err != nil {
			return err
		}
		if touched {
			o.waiting = append(o.waiting, o.shorter[0])
		}
	}
	for o.ahead == "" {
		key, err := o.next()
		if err != nil || key == "" {
			return err
		}
		name := o.store.keys.objectNamed(key)
		if name != o.newest && (o.after == "" || comesBefore(o.after, name)) {
			o.ahead, o.newest = name, name
		}
	}
	return nil
}

// keyReader reads the keys of a range that were put since, a page at a time.
type keyReader struct {
	store *Store
	ctx   context.Context
	rest  span
	past  past
	page  []string
	done  bool
}

// next returns the next key, "" after the last.
func (r *keyReader) next() (string, error) {
	for len(r.page) == 0 {
		if r.done || r.rest.from >= r.rest.to {
			return "", nil
		}
		if err := r.read(); err != nil {
			return "", err
		}
	}
	key := r.page[0]
	r.page = r.page[1:]
	return key, nil
}

// read filters the keys itself: etcd would read the whole range to find some.
func (r *keyReader) read() error {
	resp, err := r.store.client.Get(r.ctx, r.rest.from, clientv3.WithRange(r.rest.to), clientv3.WithKeysOnly(),
		clientv3.WithRev(r.past.now), clientv3.WithLimit(sweepPage))
	if err != nil {
		return translate("read the history", err, schema.Key{})
	}
	for _, kv := range resp.Kvs {
		if kv.ModRevision > r.past.from {
			r.page = append(r.page, string(kv.Key))
		}
	}
	if r.done = !resp.More; resp.More {
		r.rest = r.rest.after(string(resp.Kvs[len(resp.Kvs)-1].Key))
	}
	return nil
}

func (r *keyReader) isTouched(key string) (bool, error) {
	resp, err := r.store.client.Get(r.ctx, key, clientv3.WithKeysOnly(), clientv3.WithRev(r.past.now))
	if err != nil {
		return false, translate("read the history", err, schema.Key{})
	}
	return len(resp.Kvs) > 0 && resp.Kvs[0].ModRevision > r.past.from, nil
}
