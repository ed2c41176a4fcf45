package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// KeepSettings stores the settings of the mesh beside the objects of a prefix, so that
// the next snapshot contains them. An empty text removes them.
func KeepSettings(ctx context.Context, client *clientv3.Client, prefix string, text []byte) error {
	key := newLayout(prefix).settings
	if len(text) == 0 {
		_, err := client.Delete(ctx, key)
		return err
	}
	_, err := client.Put(ctx, key, string(text))
	return err
}
