package etcd_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

var quiet = slog.New(slog.DiscardHandler)

// fresh makes stores that share an etcd, each under a prefix of its own.
func fresh(client *clientv3.Client) storetest.New {
	var count atomic.Int32
	return func(testing.TB) store.Interface {
		return etcd.New(client, fmt.Sprintf("/test-%d", count.Add(1)), quiet)
	}
}

func compacting(client *clientv3.Client) storetest.Capabilities {
	return storetest.Capabilities{Compact: func(tb testing.TB, _ store.Interface, revision int64) {
		tb.Helper()
		if _, err := client.Compact(tb.Context(), revision); err != nil {
			tb.Fatal(err)
		}
	}}
}

func TestContractOverGRPC(t *testing.T) {
	client := etcdtest.Start(t).Client()
	storetest.Run(t, fresh(client), compacting(client))
}

func TestContractInProcess(t *testing.T) {
	client := embedded(t, t.TempDir()).Client()
	storetest.Run(t, fresh(client), compacting(client))
}

func embedded(tb testing.TB, dir string) *etcd.Embedded {
	tb.Helper()
	e, err := etcd.StartEmbedded(tb.Context(), etcd.EmbeddedOptions{Dir: dir, Log: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}
