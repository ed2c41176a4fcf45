package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/store"
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
	if _, _, err := e.Defragment(ctx); !errors.Is(err, ErrSnapshotOpen) {
		t.Errorf("beside a snapshot: %v", err)
	}
	if err := keptTurn(e.keeper); err != nil {
		t.Errorf("the keeper beside a snapshot: %v", err)
	}
	if _, err := s.Get(ctx, made.Key(), store.ReadOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := s.Update(ctx, storetest.Rule(t, "default", "a", 2)); err != nil {
		t.Error(err)
	}
	if n := e.keeper.defrags.Load(); n != 0 {
		t.Errorf("written anew %d times", n)
	}
	if err := snapshot.Close(); err != nil {
		t.Fatal(err)
	}
	if err := keptTurn(e.keeper); err != nil {
		t.Error(err)
	}
	if _, _, err := e.Defragment(ctx); err != nil {
		t.Error(err)
	}
	if n := e.keeper.defrags.Load(); n != 2 {
		t.Errorf("without a snapshot: written anew %d times, want 2", n)
	}
}

// keptTurn runs a turn of a keeper that has a reason to defragment: a refused write
// that needs the room.
func keptTurn(k *keeper) error {
	k.turning.Lock()
	defer k.turning.Unlock()
	defer func(known *ledger) { k.ledger = known }(k.ledger)
	k.ledger = newLedger()
	k.ledger.live = -k.quota.limit // Makes nearly all of the file count as holes.
	return k.defragment(time.Now(), true)
}

// TestSnapshotBesideDefragment checks that a snapshot waits until the file is rewritten
// or its context ends.
func TestSnapshotBesideDefragment(t *testing.T) {
	ctx, e, _ := small(t)
	if !e.keeper.file.TryAcquire(everySnapshot) {
		t.Fatal("the file is in use")
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.Snapshot(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	go e.keeper.file.Release(everySnapshot)
	snapshot, err := e.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}
}
