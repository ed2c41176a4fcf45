package etcd

import (
	"encoding/json"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// object reads a value as it is at a revision. One that is an object of another
// key cannot be read either: nobody would find it by its name.
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

// unreadable stands for a value that cannot be read. All that is known of it is
// its key and its revision.
func unreadable(key schema.Key, revision int64) (*schema.Object, error) {
	kind, ok := schema.KindByName(key.Kind)
	if !ok {
		return nil, &store.Error{Kind: store.ErrInvalid, Key: key, Detail: "no such kind"}
	}
	meta := metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, ResourceVersion: strconv.FormatInt(revision, 10),
	}
	return schema.New(kind, meta, json.RawMessage("{}"))
}

// replace is an update of a value that cannot be read: a delete and a create.
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
