package etcd_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store/etcd"
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

// BenchmarkUpdateByGuess is an update with what a cache spares it, and
// without.
func BenchmarkUpdateByGuess(b *testing.B) {
	for name, stores := range map[string]storetest.New{
		"in process": fresh(embedded(b, b.TempDir()).Client()), "over gRPC": fresh(etcdtest.Start(b).Client()),
	} {
		for _, guessed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/guess=%v", name, guessed), func(b *testing.B) {
				s := stores(b).(*etcd.Store)
				last, err := s.Create(b.Context(), storetest.Rule(b, "default", "a", 0))
				if err != nil {
					b.Fatal(err)
				}
				if guessed {
					s.Guess(func(schema.Key) *schema.Object { return last })
				}
				for i := 1; b.Loop(); i++ {
					if last, err = s.Update(b.Context(), storetest.Rule(b, "default", "a", i)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
