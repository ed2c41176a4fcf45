package register

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/v3"
)

// sharedKeyBytes is the length of the key that the members share.
const sharedKeyBytes = 32

// sharedKeyRetry is the time between two tries to read the key.
const sharedKeyRetry = time.Second

// The keys that servers share.
const (
	ReplicaKey = "replica-key" // by which they prove themselves to each other
	TokenKey   = "token-key"   // which signs the tokens of service accounts
)

// SharedKey returns a random key of 32 bytes. All servers on the same store share it:
//
//	<prefix>/<name>
//
// The first server makes it. SharedKey waits until etcd answers or ctx ends.
func SharedKey(ctx context.Context, client *clientv3.Client, prefix, name string) ([]byte, error) {
	name = strings.TrimRight(prefix, "/") + "/" + name
	made := make([]byte, sharedKeyBytes)
	_, _ = rand.Read(made) // It never fails.
	for {
		resp, err := client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).
			Then(clientv3.OpPut(name, string(made))).
			Else(clientv3.OpGet(name)).Commit()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && resp.Succeeded:
			return made, nil
		case err == nil:
			key := resp.Responses[0].GetResponseRange().Kvs[0].Value
			if len(key) != sharedKeyBytes {
				return nil, fmt.Errorf("the key at %s in etcd has %d bytes, want %d: delete it, and the next server that starts makes another", name, len(key), sharedKeyBytes)
			}
			return key, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(sharedKeyRetry):
		}
	}
}
