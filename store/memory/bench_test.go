package memory_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/store/storetest"
)

func BenchmarkStore(b *testing.B) { storetest.Bench(b, newStore) }
