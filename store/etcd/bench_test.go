package etcd_test

import (
	"context"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// BenchmarkInProcess measures the embedded etcd, with its syncs to disk.
func BenchmarkInProcess(b *testing.B) {
	storetest.Bench(b, fresh(startEmbedded(b, b.TempDir()).Client()))
}

// BenchmarkOverGRPC measures an etcd without syncs, through a socket.
func BenchmarkOverGRPC(b *testing.B) {
	storetest.Bench(b, fresh(etcdtest.Start(b).Client()))
}

// BenchmarkUpdateByGuess measures an update with and without the guesses of a cache.
func BenchmarkUpdateByGuess(b *testing.B) {
	for name, stores := range map[string]storetest.New{
		"in process": fresh(startEmbedded(b, b.TempDir()).Client()), "over gRPC": fresh(etcdtest.Start(b).Client()),
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

// agreeable is an etcd that accepts every transaction immediately.
type agreeable struct{ clientv3.KV }

type agreed struct{ clientv3.Txn }

func (agreeable) Txn(context.Context) clientv3.Txn { return agreed{} }

func (a agreed) If(...clientv3.Cmp) clientv3.Txn  { return a }
func (a agreed) Then(...clientv3.Op) clientv3.Txn { return a }
func (a agreed) Else(...clientv3.Op) clientv3.Txn { return a }

func (agreed) Commit() (*clientv3.TxnResponse, error) {
	return &clientv3.TxnResponse{Succeeded: true, Header: &etcdserverpb.ResponseHeader{Revision: 7}}, nil
}

// BenchmarkAroundEtcd measures a create without etcd: from a JSON text to the returned
// object.
func BenchmarkAroundEtcd(b *testing.B) {
	const text = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"a"},"spec":{"destination":{"name":"reviews"},"match":{"request":{"headers":{"cookie":{"regex":"^(.*?;)?(user=jason)(;.*)?$"}}}},"precedence":2,"route":[{"labels":{"version":"v1"},"weight":50},{"labels":{"version":"v2"},"weight":50}]}}`
	s := store.Strict(etcd.New(&clientv3.Client{KV: agreeable{}}, etcd.DefaultPrefix, quiet))
	b.ReportAllocs()
	for b.Loop() {
		o, list := schema.Decode([]byte(text), schema.Options{})
		if o == nil {
			b.Fatal(list)
		}
		if _, err := s.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}
