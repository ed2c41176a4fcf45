package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Migration copies all objects under a prefix, with their history, from one etcd into
// another.
//
// The target must have no objects under that prefix. While it is being filled, a key marks
// it and the head of the clock is missing, so any Store on it refuses reads and writes
// (store.ErrUnavailable). Run writes the head last, after it has read everything back. So a
// reader gets everything or nothing. If a migration is killed, the next one starts over. Of
// two migrations at the same time, the later one wins.
//
// The target assigns its own revisions, in the order of the old ones. The changes of
// one transaction stay one transaction if etcd accepts its size.
type Migration struct {
	From, To *clientv3.Client
	Prefix   string
	// Progress is called with counts of entries, which are objects and records of their
	// earlier states. It may be nil.
	Progress func(done, total int)
}

// Limits of one transaction, within the defaults of etcd: 128 requests and 1.5 MiB.
// migrateOps must be even, because each entry is written together with its record.
const (
	migrateOps   = 120
	migrateBytes = 1 << 20
	// migratePage is the number of keys in one read.
	migratePage = 1000
)

// ErrNotEmpty means that the target of a migration has objects, or had some.
var ErrNotEmpty = errors.New("it is not empty")

// Run migrates and returns the number of objects.
func (m Migration) Run(ctx context.Context) (objects int, err error) {
	if m.Progress == nil {
		m.Progress = func(int, int) {}
	}
	r := migrating{Migration: m, keys: newLayout(m.Prefix), id: uuid.NewString(), last: make(map[string]moved)}
	if err := r.begin(ctx); err != nil {
		return 0, fmt.Errorf("migrate: the target: %w", err)
	}
	entries, err := r.survey(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrate: read the source: %w", err)
	}
	if err := r.fill(ctx, entries); err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	if err := r.finish(ctx, len(entries)); err != nil {
		return 0, fmt.Errorf("migrate: finish: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.key, r.keys.objects) {
			objects++
		}
	}
	return objects, nil
}

// migrating is a running migration.
type migrating struct {
	Migration
	keys  layout
	id    string // the owner of the claim in the target
	begun int64  // revision of the target at the start
	at    int64  // revision of the source that is copied
	// known is the revision up to which records may be missing. more is the revision
	// since which the number in kept holds. Both are for source and target.
	known, more moved
	kept        kept
	// last is the newest copied entry of each object.
	last map[string]moved
}

// moved is a revision of the source and its counterpart in the target.
type moved struct{ from, to int64 }

// begin claims the target if it is empty or was left by another migration.
func (r *migrating) begin(ctx context.Context) error {
	none := []clientv3.Cmp{r.keys.absent(r.keys.head), r.keys.absent(r.keys.floor)}
	for _, p := range r.keys.content() {
		none = append(none, r.keys.absent(p).WithPrefix())
	}
	claim := clientv3.OpPut(r.keys.migration, r.id)
	fresh, err := r.To.Txn(ctx).If(append(none, r.keys.absent(r.keys.migration))...).Then(claim).Commit()
	if err != nil {
		return err
	}
	r.begun = fresh.Header.Revision
	if fresh.Succeeded {
		return nil
	}
	clean := []clientv3.Op{claim, clientv3.OpDelete(r.keys.floor), clientv3.OpDelete(r.keys.kept)}
	for _, p := range r.keys.content() {
		clean = append(clean, clientv3.OpDelete(p, clientv3.WithPrefix()))
	}
	left, err := r.To.Txn(ctx).
		If(r.keys.absent(r.keys.head), clientv3.Compare(clientv3.CreateRevision(r.keys.migration), ">", 0)).
		Then(clean...).Commit()
	switch {
	case err != nil:
		return err
	case !left.Succeeded:
		return fmt.Errorf("%w: there is a store under %s: give another --etcd-prefix or another etcd", ErrNotEmpty, r.Prefix)
	}
	r.begun = left.Header.Revision
	return nil
}

// fill writes the entries, one transaction of the source after the other.
func (r *migrating) fill(ctx context.Context, entries []entry) error {
	for done := 0; done < len(entries); {
		n := together(entries[done:])
		if err := r.transaction(ctx, entries[done:done+n]); err != nil {
			return err
		}
		done += n
		r.Progress(done, len(entries))
	}
	return nil
}

// transaction copies the entries of one transaction. It splits them if they exceed what
// etcd accepts by default, but never separates an object from its record.
func (r *migrating) transaction(ctx context.Context, entries []entry) error {
	var puts []clientv3.Op
	size, from := 0, 0
	for i, e := range entries {
		value, err := r.value(ctx, e)
		if err != nil {
			return err
		}
		another := i > 0 && r.keys.objectNamed(entries[i-1].key) != r.keys.objectNamed(e.key)
		if another && (len(puts)+2 > migrateOps || size+len(value) > migrateBytes) {
			if err := r.put(ctx, entries[from:i], puts); err != nil {
				return err
			}
			puts, size, from = nil, 0, i
		}
		puts = append(puts, clientv3.OpPut(e.key, string(value)))
		size += len(value)
	}
	return r.put(ctx, entries[from:], puts)
}

// value returns the value of an entry in the target.
func (r *migrating) value(ctx context.Context, e entry) ([]byte, error) {
	resp, err := r.From.Get(ctx, e.key, clientv3.WithRev(r.at))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the source: %w", err)
	case len(resp.Kvs) != 1:
		return nil, fmt.Errorf("read the source: %s is gone", e.key)
	case strings.HasPrefix(e.key, r.keys.objects):
		return resp.Kvs[0].Value, nil
	}
	return r.record(r.keys.objectNamed(e.key), resp.Kvs[0].Value), nil
}

// record returns a record with the revision of its state before converted to the
// target's clock. That is the revision of the migration's start if the entry that made
// the state is not kept. A record that cannot be read is copied unchanged.
func (r *migrating) record(object string, value []byte) []byte {
	var rec record
	if json.Unmarshal(value, &rec) != nil || rec.Revision == 0 {
		return value
	}
	before := rec.Revision
	rec.Revision = r.begun
	if last := r.last[object]; last.from == before {
		rec.Revision = last.to
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return value
	}
	return text
}

// put writes while the target is still claimed, and reads back what it wrote.
func (r *migrating) put(ctx context.Context, entries []entry, puts []clientv3.Op) error {
	resp, err := r.To.Txn(ctx).If(r.ours()...).Then(puts...).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("write the target: %w", err)
	case !resp.Succeeded:
		return errLost
	}
	to := resp.Header.Revision
	for _, e := range entries {
		r.last[r.keys.objectNamed(e.key)] = moved{e.revision, to}
	}
	for _, bound := range []*moved{&r.known, &r.more} {
		if entries[0].revision <= bound.from {
			bound.to = to
		}
	}
	return r.compare(ctx, puts, to)
}

// errLost means that the claim of begin no longer holds.
var errLost = errors.New("another migration into the target has begun, or somebody has written there")

// ours returns the conditions of every write: no other migration fills the target, and
// no store uses it yet.
func (r *migrating) ours() []clientv3.Cmp {
	return []clientv3.Cmp{clientv3.Compare(clientv3.Value(r.keys.migration), "=", r.id), r.keys.absent(r.keys.head)}
}

// compare reads back what was put.
func (r *migrating) compare(ctx context.Context, puts []clientv3.Op, revision int64) error {
	reads := make([]clientv3.Op, len(puts))
	for i, p := range puts {
		reads[i] = clientv3.OpGet(string(p.KeyBytes()))
	}
	resp, err := r.To.Txn(ctx).Then(reads...).Commit()
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	for i, p := range puts {
		kvs := resp.Responses[i].GetResponseRange().Kvs
		if len(kvs) != 1 || kvs[0].ModRevision != revision || !bytes.Equal(kvs[0].Value, p.ValueBytes()) {
			return fmt.Errorf("read back: %s is not what was written", p.KeyBytes())
		}
	}
	return nil
}

// finish opens the target if it has as many entries as were copied.
func (r *migrating) finish(ctx context.Context, entries int) error {
	count := 0
	for _, prefix := range r.keys.content() {
		resp, err := r.To.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return err
		}
		count += int(resp.Count)
	}
	if count != entries {
		return fmt.Errorf("the target has %d entries, %d were brought", count, entries)
	}
	shared, err := r.shared(ctx)
	if err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	statuses, err := r.From.Get(ctx, r.keys.statuses, clientv3.WithCountOnly(), clientv3.WithRev(r.at))
	if err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	if statuses.Count > 0 {
		// The statuses themselves name revisions of the source.
		shared = append(shared, clientv3.OpPut(r.keys.statuses, string(noStatuses)))
	}
	floor := strconv.FormatInt(r.known.to, 10)
	resp, err := r.To.Txn(ctx).If(r.ours()...).
		Then(append(shared, clientv3.OpDelete(r.keys.migration), clientv3.OpPut(r.keys.floor, floor),
			clientv3.OpPut(r.keys.kept, kept{r.kept.records, r.more.to}.String()), r.keys.tick())...).Commit()
	if err == nil && !resp.Succeeded {
		err = errLost
	}
	return err
}

// shared returns the writes of what the servers of the source share.
func (r *migrating) shared(ctx context.Context) (puts []clientv3.Op, err error) {
	for _, key := range r.keys.shared() {
		resp, err := r.From.Get(ctx, key, clientv3.WithRev(r.at))
		if err != nil {
			return nil, err
		}
		for _, kv := range resp.Kvs {
			puts = append(puts, clientv3.OpPut(key, string(kv.Value)))
		}
	}
	return puts, nil
}
