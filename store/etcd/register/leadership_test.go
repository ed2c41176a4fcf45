package register_test

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/etcd/register"
)

// TestOneLeads checks that one server leads at a time; that the next one does when the first
// resigns or its lease ends; and that a leader of before can write nothing on its condition.
func TestOneLeads(t *testing.T) {
	client := etcdtest.Start(t).Client()
	lead := func(ctx context.Context, name string) (*register.Leadership, error) {
		return register.Lead(ctx, client, etcd.DefaultPrefix, "task", name)
	}
	may := func(l *register.Leadership) bool {
		t.Helper()
		resp, err := client.Txn(t.Context()).If(l.Holds()).Then(clientv3.OpPut("/done", "")).Commit()
		if err != nil {
			t.Fatal(err)
		}
		return resp.Succeeded
	}
	first, err := lead(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := lead(impatient, "impatient"); ended <- err }()
	next := make(chan *register.Leadership, 1)
	go func() {
		l, err := lead(t.Context(), "second")
		if err != nil {
			t.Error(err)
		}
		next <- l
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a server that does not wait gets %v", err)
	}
	select {
	case <-next:
		t.Fatal("two lead")
	default:
	}
	if !may(first) {
		t.Error("the leader may not write")
	}
	first.Resign()
	second := <-next
	if second == nil {
		t.FailNow()
	}
	if may(first) || !may(second) {
		t.Error("after the first has resigned, only the second may write")
	}
	leases, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if _, err := client.Revoke(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	<-second.Lost()
	if may(second) {
		t.Error("without its lease it may write")
	}
	third, err := lead(t.Context(), "third")
	if err != nil {
		t.Fatal(err)
	}
	third.Resign()
}
