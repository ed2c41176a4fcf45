package yardstick

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// errChanged is the answer to a write that came too late.
var errChanged = errors.New("the key has changed")

// whatever is a revision that each key has.
const whatever = -1

// put writes a key if it has a revision, 0 for none, and tells the one that it gets.
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

// Raw is an etcd asked over gRPC, over a few connections as a busy client has them.
type Raw struct {
	clients []*clientv3.Client
}

// rawConnections is more than what helps on two processors; one has all clients
// wait for one reader of frames.
const rawConnections = 4

// DialRaw connects.
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

// Client is that of one of many.
func (r *Raw) Client(i int) *clientv3.Client { return r.clients[i%len(r.clients)] }

// Put writes a key if it has a revision, as put does.
func (r *Raw) Put(ctx context.Context, i int, key string, value []byte, revision int64) (int64, error) {
	return put(ctx, r.Client(i), key, value, revision)
}

// Clear deletes all that begins so.
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
