package etcd_test

import (
	"context"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestClockThatCannotBeMoved checks that an event is never ahead of the store, even if
// another program made the change and etcd accepts no put, not even that of the clock.
// Once etcd accepts one, all other servers know the change too.
func TestClockThatCannotBeMoved(t *testing.T) {
	outside.Slow(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := etcdtest.Start(t).Client()
	s := etcd.New(client, etcd.DefaultPrefix, quiet)
	if _, err := s.Create(ctx, storetest.Rule(t, "default", "a", 1)); err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(ctx, store.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	alarm := raiseSpaceAlarm(ctx, t, client)
	gone, err := client.Delete(ctx, etcd.DefaultPrefix+"/objects/config.istio.io/routerules/default/a")
	if err != nil || gone.Deleted != 1 {
		t.Fatal(gone, err)
	}
	told := (<-w.Batches()).Revision
	if told != gone.Header.Revision {
		t.Fatalf("told of revision %d, %v; want %d", told, w.Err(), gone.Header.Revision)
	}
	if revision, err := s.Revision(ctx); err != nil || revision != told {
		t.Errorf("told of %d, the store is at %d, %v", told, revision, err)
	}
	if count, revision, err := s.Count(ctx); err != nil || revision != told || count != 0 {
		t.Errorf("told of %d, counted %d at %d, %v", told, count, revision, err)
	}
	if list, err := s.List(ctx, store.Scope{}, store.ListOptions{}); err != nil || list.Revision != told || len(list.Items) != 0 {
		t.Errorf("told of %d, listed %+v, %v", told, list, err)
	}
	if _, err := client.AlarmDisarm(ctx, alarm); err != nil {
		t.Fatal(err)
	}
	other := etcd.New(client, etcd.DefaultPrefix, quiet)
	for revision := int64(0); revision <= told; time.Sleep(10 * time.Millisecond) {
		if revision, err = other.Revision(ctx); err != nil {
			t.Fatalf("others are told of revision %d, %v", revision, err)
		}
	}
}

// raiseSpaceAlarm makes etcd refuse puts as if its quota were used up.
func raiseSpaceAlarm(ctx context.Context, t *testing.T, client *clientv3.Client) *clientv3.AlarmMember {
	t.Helper()
	alarm := etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, &alarm); err != nil {
		t.Fatal(err)
	}
	raised, err := client.AlarmList(ctx)
	if err != nil || len(raised.Alarms) != 1 {
		t.Fatal(raised, err)
	}
	return (*clientv3.AlarmMember)(raised.Alarms[0])
}
