package memory_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

var capabilities = storetest.Capabilities{
	Replaced: true,
	Compact:  func(_ testing.TB, s store.Interface, revision int64) { s.(*memory.Store).Compact(revision) },
}

func newStore(testing.TB) store.Interface { return memory.New() }

func TestContract(t *testing.T) { storetest.Run(t, newStore, capabilities) }

func TestContractBehindStrictDoor(t *testing.T) {
	storetest.Run(t, func(tb testing.TB) store.Interface { return store.Strict(memory.New()) }, storetest.Capabilities{})
}
