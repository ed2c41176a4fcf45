package embedded_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestDefragmentBesideSnapshot checks that the file is not rewritten while a snapshot
// is open, whoever asks for it, and that the store goes on.
func TestDefragmentBesideSnapshot(t *testing.T) {
	ctx, e, s := small(t)
	made, err := s.Create(ctx, storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := e.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	second, err := e.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Defragment(ctx); !errors.Is(err, embedded.ErrSnapshotOpen) {
		t.Errorf("beside a snapshot: %v", err)
	}
	if err := embedded.DefragmentForRoom(e); err != nil {
		t.Errorf("the keeper beside a snapshot: %v", err)
	}
	if _, err := s.Get(ctx, made.Key(), store.ReadOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := s.Update(ctx, storetest.Rule(t, "default", "a", 2)); err != nil {
		t.Error(err)
	}
	if n := embedded.Defragmented(e); n != 0 {
		t.Errorf("written anew %d times", n)
	}
	if err := snapshot.Close(); err != nil {
		t.Fatal(err)
	}
	if err := embedded.DefragmentForRoom(e); err != nil {
		t.Error(err)
	}
	if _, _, err := e.Defragment(ctx); err != nil {
		t.Error(err)
	}
	if n := embedded.Defragmented(e); n != 2 {
		t.Errorf("without a snapshot: written anew %d times, want 2", n)
	}
}

// TestSnapshotBesideDefragment checks that a snapshot waits until the file is rewritten
// or its context ends.
func TestSnapshotBesideDefragment(t *testing.T) {
	ctx, e, _ := small(t)
	release, ok := embedded.HoldFile(e)
	if !ok {
		t.Fatal("the file is in use")
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.Snapshot(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	go release()
	snapshot, err := e.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}
}
