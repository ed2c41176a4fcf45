package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/v3"
)

// Replica is a pilot-api that shares the store.
type Replica struct {
	Name string `json:"name"`
	URL  string `json:"url"` // where the others reach it
}

// Replicas is the register of those that run. Each is there under a lease, and so
// no longer than it lives: <prefix>/replicas/<name>.
type Replicas struct {
	client *clientv3.Client
	prefix string
	self   Replica
	log    *slog.Logger
}

// replicaTTL is how long a replica that died is still listed, in seconds.
const replicaTTL = 15

// NewReplicas is the register as one of its members sees it.
func NewReplicas(client *clientv3.Client, prefix string, self Replica, log *slog.Logger) *Replicas {
	return &Replicas{client: client, prefix: strings.TrimRight(prefix, "/") + "/replicas/", self: self, log: log}
}

// Self is the member that this is.
func (r *Replicas) Self() Replica { return r.self }

// List is all members, by name.
func (r *Replicas) List(ctx context.Context) ([]Replica, error) {
	resp, err := r.client.Get(ctx, r.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	var all []Replica
	for _, kv := range resp.Kvs {
		var member Replica
		if err := json.Unmarshal(kv.Value, &member); err != nil {
			r.log.Warn("a replica's entry cannot be read", "key", string(kv.Key), "error", err)
			continue
		}
		all = append(all, member)
	}
	slices.SortFunc(all, func(a, b Replica) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Run keeps this member in the register until ctx ends, and takes it out then. An
// etcd that is away is tried until it is back.
func (r *Replicas) Run(ctx context.Context) error {
	for {
		err := r.stay(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.log.Debug("not in the register of replicas; trying again", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// stay registers, and returns when the lease is lost.
func (r *Replicas) stay(ctx context.Context) error {
	lease, err := r.client.Grant(ctx, replicaTTL)
	if err != nil {
		return err
	}
	defer r.leave(lease.ID)
	value, err := json.Marshal(r.self)
	if err != nil {
		return err
	}
	if _, err := r.client.Put(ctx, r.prefix+r.self.Name, string(value), clientv3.WithLease(lease.ID)); err != nil {
		return err
	}
	alive, err := r.client.KeepAlive(ctx, lease.ID)
	if err != nil {
		return err
	}
	for range alive {
	}
	return errors.New("the lease has ended")
}

// leave is for a member that stops, whose context has ended.
func (r *Replicas) leave(lease clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = r.client.Revoke(ctx, lease)
}
