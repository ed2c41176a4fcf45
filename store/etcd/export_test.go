package etcd

import (
	"context"
)

// Settle trims now what KeepHistory would trim soon.
func Settle(ctx context.Context, s *Store) error { return s.trim(ctx, s.surplus.take()) }

// Sweep checks all records as of a later time.
var Sweep = (*Store).sweep
