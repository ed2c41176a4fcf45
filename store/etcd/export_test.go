package etcd

import "context"

// Settle trims at once what KeepHistory would trim in a moment.
func Settle(ctx context.Context, s *Store) error { return s.trim(ctx, s.surplus.take()) }

// Sweep looks over all records as if it were later.
var Sweep = (*Store).sweep
