package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store/etcd/roster"
)

// Holds returns an error if nothing was ever stored under the prefix but another prefix has
// objects. Then the prefix is probably wrong, and proxies would get a mesh without objects.
func Holds(ctx context.Context, client *clientv3.Client, prefix string) error {
	ours, stores, _, err := storesIn(ctx, client, prefix)
	if err != nil || ours || len(stores) == 0 {
		return err
	}
	return wrongPrefix(prefix, stores)
}

// holdsOnly is Holds, and also refuses an etcd with any other keys. Every prefix fits an empty etcd.
func holdsOnly(ctx context.Context, client *clientv3.Client, prefix string) error {
	ours, stores, others, err := storesIn(ctx, client, prefix)
	switch {
	case err != nil || ours || others == 0:
		return err
	case len(stores) == 0:
		return fmt.Errorf("no objects were ever stored under the prefix %q, and there are none under others: %d keys are of something else", prefix, others)
	}
	return wrongPrefix(prefix, stores)
}

func wrongPrefix(prefix string, stores []string) error {
	return fmt.Errorf("no objects were ever stored under the prefix %q (--etcd-prefix); those that there are have %s", prefix, strings.Join(stores, ", "))
}

// storesIn returns the prefixes that have objects, unless ours has or had some.
func storesIn(ctx context.Context, client *clientv3.Client, prefix string) (ours bool, stores []string, others int, err error) {
	mine := newLayout(prefix)
	from, to := mine.changes()
	known, err := client.Get(ctx, from, to, clientv3.WithCountOnly())
	if err != nil || known.Count > 0 {
		return true, nil, 0, err
	}
	all, err := client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return false, nil, 0, err
	}
	for _, kv := range all.Kvs {
		key := string(kv.Key)
		if key != mine.settings && !strings.HasPrefix(key, roster.Root(prefix)) {
			others++
		}
		if root, _, ok := strings.Cut(key+"/", "/objects/"); ok {
			stores = append(stores, fmt.Sprintf("%q", root))
		}
	}
	return false, slices.Compact(stores), others, nil
}
