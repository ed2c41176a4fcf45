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

// record is a change of an object as it is stored, under the key of the object and the
// transaction; see docs/decisions/024-history.md. Its revision is etcd's ModRevision.
type record struct {
	Verb   store.Verb   `json:"verb"`
	Time   time.Time    `json:"time"`
	Author store.Author `json:"author,omitzero"`
	// Revision is the revision of the state before, 0 if there was none.
	Revision int64 `json:"revision,omitempty"`
	// Before is the state before the change. Packed is the same in gzip. Neither is set
	// if the state is lost.
	Before json.RawMessage `json:"before,omitempty"`
	Packed []byte          `json:"packed,omitempty"`
}

const (
	// packFrom is the length from which a state is compressed.
	packFrom = 16 << 10
	// maxPacked bounds the stored length of a state. The new state must fit beside it
	// into one request, which etcd by default limits to 1.5 MiB.
	maxPacked = 256 << 10
)

// began returns when a transaction got its name; ok is false for other names.
func began(transaction string) (time.Time, bool) {
	id, err := uuid.Parse(transaction)
	if err != nil || id.Version() != 7 {
		return time.Time{}, false
	}
	return time.Unix(id.Time().UnixTime()), true
}

// historyOf returns the prefix of all records of an object.
func (l layout) historyOf(objectKey string) string {
	return l.history + strings.TrimPrefix(objectKey, l.objects) + "/"
}

// objectOf is the inverse of historyOf.
func (l layout) objectOf(history string) string {
	return l.objects + strings.TrimSuffix(strings.TrimPrefix(history, l.history), "/")
}

// unrecorded returns the operation of a transaction without records. It raises the
// floor to the transaction's own revision, which is unknown before the commit.
func (l layout) unrecorded() clientv3.Op { return clientv3.OpPut(l.floor, "") }

// note creates the records of the changes of a write.
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

// encode returns a record as it is stored.
func (r *record) encode() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return schema.WithChecksum(text), nil
}

// decode reads the result of encode.
func (r *record) decode(value []byte) error {
	text, err := schema.WithoutChecksum(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, r)
}

// verb returns the verb of an operation's result, as store.Record defines it.
func (w *write) verb(i int) store.Verb {
	switch {
	case w.next[i] == nil:
		return store.OpDelete
	case w.current[i] == nil:
		return store.OpCreate
	}
	return store.OpUpdate
}

// keep stores the state before in the record, if there is one and it can be kept.
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

// state returns the text of the state before, nil if it is not kept.
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

// entry decodes a record for readers. If it cannot be decoded, only its revision and
// transaction are known.
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

// cutLast splits a key before its last part.
func cutLast(key string) (prefix, last string) {
	i := strings.LastIndexByte(key, '/') + 1
	return key[:i], key[i:]
}
