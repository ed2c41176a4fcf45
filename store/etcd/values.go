package etcd

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// object decodes a value at a revision. An object under another object's key counts as
// unreadable, because it could not be found by its name.
func (l layout) object(kv *mvccpb.KeyValue, revision int64) (*schema.Object, error) {
	obj, err := schema.Stored(kv.Value, revision)
	if err != nil {
		return nil, err
	}
	if name, ok := l.of(obj.Key()); !ok || name != string(kv.Key) {
		return nil, fmt.Errorf("decode stored object: %s is under the key of another", obj.Key())
	}
	return obj, nil
}

// isStoredAs reports whether a value is the encoding of an object.
func isStoredAs(obj *schema.Object, value []byte) bool {
	text, err := schema.WithoutChecksum(value)
	return err == nil && obj.IsEncodedAs(text)
}

// mostWhy bounds the description of one unreadable value, in bytes.
const mostWhy = 300

// unreadable returns what is known of a value that cannot be read.
func (l layout) unreadable(kv *mvccpb.KeyValue, why error) store.Unreadable {
	key, _ := l.parse(string(kv.Key))
	text := strings.ToValidUTF8(why.Error(), "�")
	if len(text) > mostWhy {
		text = strings.ToValidUTF8(text[:mostWhy], "") + "…"
	}
	return store.Unreadable{Key: key, Place: strings.ToValidUTF8(string(kv.Key), "�"), Revision: kv.ModRevision, Why: text}
}

// inScope reports whether u is in scope. Values without a key are only in the full
// scope.
func inScope(u store.Unreadable, scope store.Scope) bool {
	return scope == (store.Scope{}) || u.Key != (schema.Key{}) && scope.Contains(u.Key)
}

// placeholder returns an object that stands for an unreadable value. Only its key and
// revision are known.
func placeholder(key schema.Key, revision int64) (*schema.Object, error) {
	kind, ok := schema.KindByName(key.Kind)
	if !ok {
		return nil, &store.Error{Kind: store.ErrInvalid, Key: key, Detail: "no such kind"}
	}
	meta := metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, ResourceVersion: strconv.FormatInt(revision, 10),
	}
	return schema.New(kind, meta, json.RawMessage("{}"))
}

// replace evaluates an update of an unreadable value as a delete and a create.
func replace(op store.Op, damaged *schema.Object, by store.Author) (store.Outcome, error) {
	given := op.Object.Meta
	remove := store.Op{Verb: store.OpDelete, Key: op.Target(), Pre: store.Preconditions{
		UID: string(given.UID), ResourceVersion: given.ResourceVersion,
	}}
	if _, err := remove.Evaluate(damaged, by); err != nil {
		return store.Outcome{}, err
	}
	return store.Op{Verb: store.OpCreate, Object: op.Object}.Evaluate(nil, by)
}
