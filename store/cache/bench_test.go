package cache_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// BenchmarkOverEmbedded measures the read path of a server with its defaults.
func BenchmarkOverEmbedded(b *testing.B) {
	e, err := embedded.Start(b.Context(), embedded.Options{Dir: b.TempDir(), Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	var count atomic.Int32
	storetest.Bench(b, func(tb testing.TB) store.Interface {
		return cached(tb, etcd.New(e.Client(), fmt.Sprintf("/bench-%d", count.Add(1)), quiet))
	})
}
