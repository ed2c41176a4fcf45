// Package register keeps the register of the servers that share a store in etcd: which
// servers are present, at which addresses, and which are missing. It also keeps the key by
// which they prove themselves to each other.
package register

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
	Name     string `json:"name"` // unique
	URL      string `json:"url"`  // the address for other replicas
	Host     string `json:"host,omitempty"`
	Instance string `json:"instance,omitempty"` // differs after each start
	// Missing is the time since which a replica has been silent without having left. It is
	// zero for a present one.
	Missing time.Time `json:"-"`
}

// Register is the register of the servers that share the store, as one member sees it.
// Each member has an entry under a lease, which ends with its heartbeats, and a second
// one under a longer lease, from which the others know that it is missing:
//
//	<prefix>/replicas/<name>
//	<prefix>/replicas-known/<name>
type Register struct {
	client       *clientv3.Client
	alive, known string // prefixes of the keys
	log          *slog.Logger

	lease, memory time.Duration // durations of the leases of the two entries

	self   atomic.Pointer[Replica]
	leases [2]clientv3.LeaseID       // of this member's entries, zero before the first
	heard  atomic.Pointer[time.Time] // when etcd last confirmed them
	lost   bool                      // heard is longer ago than the lease
	others peerMembers

	mu      sync.Mutex
	missing map[clientv3.LeaseID]time.Time // since when, by the lease of the longer entry
}

const (
	// replicaLease is how long a silent replica counts as present.
	// Less than 15 seconds after its death nobody waits for it.
	replicaLease = 10 * time.Second
	// replicaMemory is how long it then counts as missing.
	replicaMemory = 10 * time.Minute
)

// New returns the register for a server that begins to share the store.
func New(client *clientv3.Client, prefix string, self Replica, log *slog.Logger) *Register {
	root := strings.TrimRight(prefix, "/")
	r := &Register{
		client: client, alive: root + "/replicas/", known: root + "/replicas-known/", log: log,
		lease: replicaLease, memory: replicaMemory,
	}
	r.self.Store(&self)
	r.confirmed()
	return r
}

// Self returns this member. Its name may change if another member has the same one.
func (r *Register) Self() Replica { return *r.self.Load() }

// List returns all members, present and missing, sorted by name.
func (r *Register) List(ctx context.Context) ([]Replica, error) {
	resp, err := r.client.Get(ctx, strings.TrimSuffix(r.alive, "/"), clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	var members, known []Replica
	missing := map[clientv3.LeaseID]time.Time{}
	for _, kv := range slices.Backward(resp.Kvs) { // Backward, so present members come first.
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

// heardOf returns when a lease was last confirmed, as computed at the first call. etcd
// answers in seconds, and after an election with less time than has passed. For a lease
// that has just ended, it returns the latest time that this allows.
func (r *Register) heardOf(ctx context.Context, lease clientv3.LeaseID) (time.Time, error) {
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
