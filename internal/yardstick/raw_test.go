package yardstick_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/internal/yardstick"
)

// createRaw is createFor of etcd itself.
func (w *world) createRaw(ctx context.Context, space string, clients int, d time.Duration) (float64, error) {
	rate, err := yardstick.Load(clients, d, func(i int) (yardstick.Step, error) {
		n := 0
		return func() error {
			n++
			name := fmt.Sprintf("c-%d-%d", i, n)
			_, err := w.raw.Put(ctx, i, "raw/"+space+"/"+name, yardstick.Rule(space, name, i), 0)
			return err
		}, nil
	})
	if err != nil {
		return 0, err
	}
	return rate, w.raw.Clear(ctx, "raw/"+space)
}

// updateRaw is updateFor of etcd itself.
func (w *world) updateRaw(ctx context.Context, space string, clients int, d time.Duration) (float64, error) {
	return yardstick.Load(clients, d, func(i int) (yardstick.Step, error) {
		key, n := "raw/"+space+"/"+nameOf(i), 0
		found, err := w.raw.Client(i).Get(ctx, key)
		if err != nil {
			return nil, err
		}
		var revision int64
		for _, kv := range found.Kvs {
			revision = kv.ModRevision
		}
		return func() (err error) {
			n++
			revision, err = w.raw.Put(ctx, i, key, yardstick.Rule(space, nameOf(i), n), revision)
			return err
		}, nil
	})
}

// getRaw is linearizable reads of etcd itself, of what updateRaw has left.
func (w *world) getRaw(ctx context.Context, space string, objects, clients int, d time.Duration) (float64, error) {
	return yardstick.Load(clients, d, func(i int) (yardstick.Step, error) {
		n := i
		return func() error {
			n += clients
			_, err := w.raw.Client(i).Get(ctx, "raw/"+space+"/"+nameOf(n%objects))
			return err
		}, nil
	})
}
