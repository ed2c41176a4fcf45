package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// holds refuses a prefix under which nothing was ever stored, where something else
// was: it is a wrong one. An etcd that is empty has any.
func (e *Embedded) holds(ctx context.Context, prefix string) error {
	mine := newLayout(prefix)
	from, to := mine.changes()
	ours, err := e.client.Get(ctx, from, to, clientv3.WithCountOnly())
	if err != nil || ours.Count > 0 {
		return err
	}
	all, err := e.client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	others := 0
	var stores []string
	for _, kv := range all.Kvs {
		key := string(kv.Key)
		if key != mine.settings {
			others++
		}
		if root, _, ok := strings.Cut(key+"/", "/objects/"); ok {
			stores = append(stores, fmt.Sprintf("%q", root))
		}
	}
	switch stores = slices.Compact(stores); {
	case others == 0:
		return nil
	case len(stores) == 0:
		return fmt.Errorf("no objects were ever stored under the prefix %q, and there are none under others: %d keys are of something else", prefix, others)
	}
	return fmt.Errorf("no objects were ever stored under the prefix %q; those that there are have %s", prefix, strings.Join(stores, ", "))
}
