package etcd

import (
	"context"
	"time"
)

// Settle trims at once what KeepHistory would trim in a moment.
func Settle(ctx context.Context, s *Store) error { return s.trim(ctx, s.surplus.take()) }

// Sweep looks over all records as if it were later.
var Sweep = (*Store).sweep

// Hurry has a member of the register forgotten sooner.
func (r *Replicas) Hurry(lease, memory time.Duration) { r.lease, r.memory = lease, memory }
