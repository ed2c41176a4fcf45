package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
)

// collector follows etcd from its first revision with etcd's own client.
type collector struct {
	client *clientv3.Client
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	changes []consistency.Change
	seen    int64
	err     error
}

const (
	objectsPrefix = etcd.DefaultPrefix + "/objects/"
	endKey        = "/consistency/end"
)

func collect(client *clientv3.Client) *collector {
	ctx, cancel := context.WithCancel(context.Background())
	c := &collector{client: client, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for answer := range client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV()) {
			if c.take(answer) {
				return
			}
		}
	}()
	return c
}

// take reports whether that was the end.
func (c *collector) take(answer clientv3.WatchResponse) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = answer.Err(); c.err != nil {
		return true
	}
	for _, ev := range answer.Events {
		c.seen = ev.Kv.ModRevision
		if string(ev.Kv.Key) == endKey {
			return true
		}
		if !strings.HasPrefix(string(ev.Kv.Key), objectsPrefix) {
			continue
		}
		change, err := changeOf(ev)
		if err != nil {
			c.err = err
			return true
		}
		c.changes = append(c.changes, change)
	}
	return false
}

// revision returns how far the collector has come.
func (c *collector) revision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// finish writes a last key and returns all changes before it.
func (c *collector) finish(ctx context.Context) ([]consistency.Change, error) {
	defer c.cancel()
	if _, err := c.client.Put(ctx, endKey, ""); err != nil {
		return nil, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("reading etcd's history: %w", ctx.Err())
	}
	if c.err != nil {
		return nil, fmt.Errorf("reading etcd's history: %w", c.err)
	}
	return c.changes, nil
}

func changeOf(ev *clientv3.Event) (consistency.Change, error) {
	change, value := consistency.Change{Type: store.Modified}, ev.Kv.Value
	switch {
	case ev.Type == clientv3.EventTypeDelete:
		change.Type, value = store.Deleted, ev.PrevKv.Value
	case ev.IsCreate():
		change.Type = store.Added
	}
	obj, err := schema.Stored(value, ev.Kv.ModRevision)
	if err != nil {
		return change, err
	}
	change.Version = versionOf(obj)
	return change, nil
}
