package register

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
)

// heartbeats is the number of heartbeats during one lease.
const heartbeats = 3

// Run keeps this member in the register until ctx ends, then removes it. While etcd is
// unreachable, Run retries.
func (r *Register) Run(ctx context.Context) error {
	defer r.leave()
	beat := time.NewTicker(r.lease / heartbeats)
	defer beat.Stop()
	for {
		if err := r.beat(ctx); ctx.Err() == nil {
			r.note(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
		}
	}
}

// CutOff returns the time since which etcd has not confirmed that this member is in the
// register. is is false while the member is in the register, or may be.
func (r *Register) CutOff() (since time.Time, is bool) {
	since = *r.heard.Load()
	return since, time.Since(since) > r.lease
}

// confirmed stores the time with its monotonic reading. A time made from a number would
// follow the wall clock.
func (r *Register) confirmed() {
	now := time.Now()
	r.heard.Store(&now)
}

// note records whether etcd has confirmed this member.
func (r *Register) note(err error) {
	if err == nil {
		r.confirmed()
	}
	since, lost := r.CutOff()
	if lost && !r.lost {
		r.log.Warn("this replica is cut off from etcd: its proxies keep what they have, and to the other replicas it is missing", "since", since, "error", err)
	} else if !lost && r.lost {
		r.log.Info("this replica is in the register again")
	}
	r.lost = lost
}

// beat confirms this member and checks the others.
func (r *Register) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.lease/heartbeats)
	defer cancel()
	if err := r.extend(ctx); err != nil {
		return err
	}
	all, err := r.List(ctx)
	if err != nil {
		return err
	}
	self := r.Self()
	at := slices.IndexFunc(all, func(one Replica) bool { return one.Name == self.Name && one.Missing.IsZero() })
	if at < 0 {
		return r.join(ctx)
	}
	if all[at].Instance != self.Instance {
		r.log.Warn("another replica calls itself as this one: they need addresses of their own (--advertise), or machines names of their own", "name", self.Name, "host", all[at].Host, "url", all[at].URL)
		self.Name += "~" + self.Instance
		r.self.Store(&self)
		return r.join(ctx)
	}
	r.others.look(r.log, self, all)
	return nil
}

// extend confirms the entries and creates those that are missing.
func (r *Register) extend(ctx context.Context) error {
	for _, lease := range r.leases {
		if lease == clientv3.NoLease {
			return r.join(ctx)
		}
		_, err := r.client.KeepAliveOnce(ctx, lease)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return r.join(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// join creates the entries, replacing those of an earlier run.
func (r *Register) join(ctx context.Context) error {
	self := r.Self()
	value, err := json.Marshal(self)
	if err != nil {
		return err
	}
	var puts []clientv3.Op
	for i, entry := range []struct {
		key string
		ttl time.Duration
	}{{r.alive, r.lease}, {r.known, r.memory}} {
		lease, err := r.client.Grant(ctx, int64(entry.ttl/time.Second))
		if err != nil {
			return err
		}
		r.leases[i] = lease.ID
		puts = append(puts, clientv3.OpPut(entry.key+self.Name, string(value), clientv3.WithLease(lease.ID)))
	}
	_, err = r.client.Txn(ctx).Then(puts...).Commit()
	return err
}

// leave removes a member that stops, so that it does not count as missing. It removes
// only its own entries, because another member may have the name by now.
func (r *Register) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, lease := range slices.Backward(r.leases[:]) {
		if lease != clientv3.NoLease {
			_, _ = r.client.Revoke(ctx, lease)
		}
	}
}
