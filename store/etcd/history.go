package etcd

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// record is a change of an object as it is stored, under the key of the object
// and the transaction; see docs/decisions/024-history.md. Its revision is etcd's
// ModRevision.
type record struct {
	Verb   store.Verb   `json:"verb"`
	Time   time.Time    `json:"time"`
	Author store.Author `json:"author,omitzero"`
	// Revision is that of the state before, 0 for none.
	Revision int64 `json:"revision,omitempty"`
	// Before is that state, and Packed the same in gzip; neither where it is
	// lost.
	Before json.RawMessage `json:"before,omitempty"`
	Packed []byte          `json:"packed,omitempty"`
}

const (
	// packFrom is the length from which a state is packed.
	packFrom = 16 << 10
	// maxPacked bounds what is kept of a state: beside it the new state must fit
	// into one request, of which etcd by default takes 1.5 MiB.
	maxPacked = 256 << 10
)

// began is when a transaction got its name; ok is false for other names.
func began(transaction string) (time.Time, bool) {
	id, err := uuid.Parse(transaction)
	if err != nil || id.Version() != 7 {
		return time.Time{}, false
	}
	return time.Unix(id.Time().UnixTime()), true
}

// historyOf is the prefix of all records of an object.
func (l layout) historyOf(objectKey string) string {
	return l.history + strings.TrimPrefix(objectKey, l.objects) + "/"
}

// objectOf is historyOf read backwards.
func (l layout) objectOf(history string) string {
	return l.objects + strings.TrimSuffix(strings.TrimPrefix(history, l.history), "/")
}

// unrecorded is the part of a transaction that makes no records: it raises the
// floor to its own revision, which nobody knows before.
func (l layout) unrecorded() clientv3.Op { return clientv3.OpPut(l.floor, "") }

// note makes the records of what a write changes.
func (w *write) note(now time.Time) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("name a transaction: %w", err)
	}
	w.transaction = id.String()
	for i := range w.ops {
		w.records[i] = nil
		if w.idle(i) {
			continue
		}
		r := record{Verb: w.verb(i), Author: w.by, Time: now.UTC()}
		r.keep(w.current[i], w.damaged[i] != nil)
		if w.records[i], err = r.encode(); err != nil {
			return err
		}
	}
	return nil
}

// encode writes a record as it is stored.
func (r *record) encode() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return schema.WithChecksum(text), nil
}

// decode reads what encode wrote.
func (r *record) decode(value []byte) error {
	text, err := schema.WithoutChecksum(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, r)
}

// verb is what comes of an operation, as store.Record says it.
func (w *write) verb(i int) store.Verb {
	switch {
	case w.next[i] == nil:
		return store.OpDelete
	case w.current[i] == nil:
		return store.OpCreate
	}
	return store.OpUpdate
}

// keep takes the state before into the record, if there is one and it can be
// kept.
func (r *record) keep(before *schema.Object, damaged bool) {
	if before == nil {
		return
	}
	r.Revision = before.Revision()
	if damaged {
		return
	}
	text := before.Encoded()
	if len(text) < packFrom {
		r.Before = text
		return
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(text) // A buffer takes everything.
	_ = z.Close()
	if packed.Len() <= maxPacked {
		r.Packed = packed.Bytes()
	}
}

// state is the text of the state before, nil where it is not kept.
func (r *record) state() ([]byte, error) {
	if r.Packed == nil {
		return r.Before, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(r.Packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, schema.MaxTextBytes+1))
}

// entry reads a record for those who ask. What cannot be read is a change of
// which nothing is known but that it was.
func (l layout) entry(kv *mvccpb.KeyValue) store.Record {
	_, transaction := cutLast(string(kv.Key))
	out := store.Record{Revision: kv.ModRevision, Transaction: transaction, Lost: true}
	var r record
	if err := r.decode(kv.Value); err != nil {
		return out
	}
	out.Verb, out.Time, out.Author = r.Verb, r.Time, r.Author
	if r.Revision == 0 {
		out.Lost = false
		return out
	}
	text, err := r.state()
	if err != nil || text == nil {
		return out
	}
	if before, err := schema.Stored(text, r.Revision); err == nil {
		out.Before, out.Lost = before, false
	}
	return out
}

// cutLast cuts a key before its last part.
func cutLast(key string) (prefix, last string) {
	i := strings.LastIndexByte(key, '/') + 1
	return key[:i], key[i:]
}
