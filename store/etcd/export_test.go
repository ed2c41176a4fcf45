package etcd

import (
	"context"
	"time"
)

// Settle trims now what KeepHistory would trim soon.
func Settle(ctx context.Context, s *Store) error { return s.trim(ctx, s.surplus.take()) }

// Sweep checks all records as of a later time.
var Sweep = (*Store).sweep

// Hurry shortens the leases of a member of the register.
func (r *Replicas) Hurry(lease, memory time.Duration) { r.lease, r.memory = lease, memory }
