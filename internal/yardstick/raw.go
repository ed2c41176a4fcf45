package yardstick

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// errChanged is returned for a write that came too late.
var errChanged = errors.New("the key has changed")

// whatever is a revision that matches any key.
const whatever = -1

// put writes a key if it has the given revision, 0 for none, and returns the new one.
func put(ctx context.Context, client *clientv3.Client, key string, value []byte, revision int64) (int64, error) {
	txn := client.Txn(ctx)
	if revision != whatever {
		txn = txn.If(clientv3.Compare(clientv3.ModRevision(key), "=", revision))
	}
	resp, err := txn.Then(clientv3.OpPut(key, string(value))).Commit()
	switch {
	case err != nil:
		return 0, err
	case !resp.Succeeded:
		return 0, errChanged
	}
	return resp.Header.Revision, nil
}

// Raw is an etcd over gRPC, with a few connections, as a busy client has them.
type Raw struct {
	clients []*clientv3.Client
}

// rawConnections is more than two processors can use. With one connection, all clients
// would wait for one reader of frames.
const rawConnections = 4

// DialRaw connects to an etcd.
func DialRaw(p *Program) (*Raw, error) {
	r := &Raw{}
	for range rawConnections {
		client, err := dial(p.Address)
		if err != nil {
			return nil, err
		}
		r.clients = append(r.clients, client)
	}
	return r, nil
}

// Client returns the client for one of many users.
func (r *Raw) Client(i int) *clientv3.Client { return r.clients[i%len(r.clients)] }

// Put writes a key if it has the given revision, as put does.
func (r *Raw) Put(ctx context.Context, i int, key string, value []byte, revision int64) (int64, error) {
	return put(ctx, r.Client(i), key, value, revision)
}

// Clear deletes all keys with a prefix.
func (r *Raw) Clear(ctx context.Context, prefix string) error {
	_, err := r.clients[0].Delete(ctx, prefix, clientv3.WithPrefix())
	return err
}

// Close disconnects.
func (r *Raw) Close() {
	for _, c := range r.clients {
		_ = c.Close()
	}
}
