package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/v3"
)

// Replica is a pilot-api that shares the store.
type Replica struct {
	Name     string `json:"name"` // no two have the same
	URL      string `json:"url"`  // where the others reach it
	Host     string `json:"host,omitempty"`
	Instance string `json:"instance,omitempty"` // another one after each start
	// Missing is since when nothing has been heard of one that did not leave; zero of
	// one that is there.
	Missing time.Time `json:"-"`
}

// Replicas is the register of those that share the store, as one of its members sees
// it. Each is there under a lease, and so no longer than it is heard of, and a second
// time under a longer one: by that the others know who is missing.
//
//	<prefix>/replicas/<name>
//	<prefix>/replicas-known/<name>
type Replicas struct {
	client       *clientv3.Client
	alive, known string // what the keys begin with
	log          *slog.Logger

	lease, memory time.Duration // of the one entry and the other

	self   atomic.Pointer[Replica]
	leases [2]clientv3.LeaseID       // of this member's entries, zero before the first
	heard  atomic.Pointer[time.Time] // when etcd confirmed them last
	lost   bool                      // and that is longer ago than the lease
	others neighbours

	mu      sync.Mutex
	missing map[clientv3.LeaseID]time.Time // since when
}

const (
	// replicaLease is how long one that nothing is heard of counts as there.
	replicaLease = 15 * time.Second
	// replicaMemory is how long it counts as missing then.
	replicaMemory = 10 * time.Minute
)

// NewReplicas is the register for one that begins to share the store.
func NewReplicas(client *clientv3.Client, prefix string, self Replica, log *slog.Logger) *Replicas {
	root := strings.TrimRight(prefix, "/")
	r := &Replicas{
		client: client, alive: root + "/replicas/", known: root + "/replicas-known/", log: log,
		lease: replicaLease, memory: replicaMemory,
	}
	r.self.Store(&self)
	r.confirmed()
	return r
}

// Self is the member that this is. Its name may change, when another one has the same.
func (r *Replicas) Self() Replica { return *r.self.Load() }

// List is all members and who is missing, by name.
func (r *Replicas) List(ctx context.Context) ([]Replica, error) {
	resp, err := r.client.Get(ctx, strings.TrimSuffix(r.alive, "/"), clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	var members, known []Replica
	missing := map[clientv3.LeaseID]time.Time{}
	for _, kv := range slices.Backward(resp.Kvs) { // Those that are there come last.
		var one Replica
		if err := json.Unmarshal(kv.Value, &one); err != nil {
			r.log.Warn("a replica's entry cannot be read", "key", string(kv.Key), "error", err)
			continue
		}
		if strings.HasPrefix(string(kv.Key), r.alive) {
			members = append(members, one)
			continue
		}
		if slices.ContainsFunc(members, func(m Replica) bool { return m.Name == one.Name }) {
			continue
		}
		lease := clientv3.LeaseID(kv.Lease)
		if one.Missing, err = r.heardOf(ctx, lease); err != nil {
			return nil, err
		}
		missing[lease] = one.Missing
		known = append(known, one)
	}
	r.mu.Lock()
	r.missing = missing
	r.mu.Unlock()
	all := slices.Concat(members, known)
	slices.SortFunc(all, func(a, b Replica) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// heardOf is when a lease was confirmed last, as it was found first: etcd tells it in
// seconds, and after an election as less long ago than it is. Of one that has just ended
// that is when it would have had to be.
func (r *Replicas) heardOf(ctx context.Context, lease clientv3.LeaseID) (time.Time, error) {
	r.mu.Lock()
	since, found := r.missing[lease]
	r.mu.Unlock()
	if found {
		return since, nil
	}
	left, err := r.client.TimeToLive(ctx, lease)
	if err != nil {
		return time.Time{}, fmt.Errorf("list replicas: %w", err)
	}
	if left.TTL < 0 {
		return time.Now().Add(-r.memory), nil
	}
	return time.Now().Add(time.Duration(left.TTL-left.GrantedTTL) * time.Second), nil
}
