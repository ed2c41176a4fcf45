package etcd_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

var quiet = slog.New(slog.DiscardHandler)

// fresh returns stores that share an etcd, each under its own prefix.
func fresh(client *clientv3.Client) storetest.New {
	var count atomic.Int32
	return func(testing.TB) store.Interface {
		return etcd.New(client, fmt.Sprintf("/test-%d", count.Add(1)), quiet)
	}
}

// large returns stores with the limits of an embedded etcd.
func large(client *clientv3.Client) storetest.New {
	stores := fresh(client)
	return func(tb testing.TB) store.Interface {
		s := stores(tb).(*etcd.Store)
		s.Limit(etcd.EmbeddedLimits)
		return s
	}
}

func compacting(client *clientv3.Client) storetest.Capabilities {
	return storetest.Capabilities{
		Replaced: true,
		Compact: func(tb testing.TB, _ store.Interface, revision int64) {
			tb.Helper()
			if _, err := client.Compact(tb.Context(), revision); err != nil {
				tb.Fatal(err)
			}
		},
		Ops: etcd.DefaultLimits.Ops,
		Settle: func(tb testing.TB, s store.Interface) {
			tb.Helper()
			if wrapped, ok := s.(interface{ behind() *etcd.Store }); ok {
				s = wrapped.behind()
			}
			if err := etcd.Settle(tb.Context(), s.(*etcd.Store)); err != nil {
				tb.Fatal(err)
			}
		},
	}
}

func TestContractOverGRPC(t *testing.T) {
	outside.Slow(t)
	client := etcdtest.Start(t).Client()
	storetest.Run(t, fresh(client), compacting(client))
}

func TestContractInProcess(t *testing.T) {
	outside.Slow(t)
	client := startEmbedded(t, t.TempDir()).Client()
	can := compacting(client)
	can.Ops = etcd.EmbeddedLimits.Ops
	storetest.Run(t, large(client), can)
}

func startEmbedded(tb testing.TB, dir string) *embedded.Etcd {
	tb.Helper()
	e, err := embedded.Start(tb.Context(), embedded.Options{Dir: dir, Log: quiet})
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
