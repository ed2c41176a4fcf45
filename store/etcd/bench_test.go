package etcd_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// BenchmarkInProcess is the embedded etcd with its syncs to disk.
func BenchmarkInProcess(b *testing.B) {
	storetest.Bench(b, fresh(embedded(b, b.TempDir()).Client()))
}

// BenchmarkOverGRPC is an etcd without syncs, reached through a socket.
func BenchmarkOverGRPC(b *testing.B) {
	storetest.Bench(b, fresh(etcdtest.Start(b).Client()))
}
