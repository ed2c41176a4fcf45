// Package storetest is the contract of package store as a runnable suite. Each
// implementation runs it in its own tests:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(testing.TB) store.Interface { return memory.New() }, storetest.Capabilities{})
//	}
//
// The benchmarks are shared as well, so that implementations compare.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// Capabilities tell what a store can do beyond the least, or cannot do.
type Capabilities struct {
	// Compact makes the store forget the changes up to a revision. Nil when
	// there is no way to bring that about: the tests of it are skipped.
	Compact func(tb testing.TB, s store.Interface, revision int64)
	// Ops is how many operations a transaction may have; 0 is MaxTxnOps.
	Ops int
	// Records is how many records of an object are kept; 0 is 10, -1 any number.
	Records int
	// Settle makes the store forget at once what it forgets in the background;
	// nil where nothing is.
	Settle func(tb testing.TB, s store.Interface)
}

// New makes an empty store for one test.
type New func(tb testing.TB) store.Interface

// Run checks every promise of store.Interface on stores that newStore makes.
func Run(t *testing.T, newStore New, can Capabilities) {
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"Create", createCases},
		{"Update", updateCases},
		{"UpdateFunc", updateFuncCases},
		{"Delete", deleteCases},
		{"Deletion", deletionCases},
		{"Txn", txnCases},
		{"History", historyCases},
		{"Contract", contractCases},
		{"Read", readCases},
		{"Watch", watchCases},
		{"Expiry", expiryCases},
		{"Concurrency", concurrencyCases},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					if c.needs != nil {
						c.needs(t, can)
					}
					c.run(newSuite(t, newStore, can))
				})
			}
		})
	}
}

// testCase is one promise.
type testCase struct {
	name  string
	needs func(t *testing.T, can Capabilities) // skips when it is not met
	run   func(s *suite)
}

func needsBound(t *testing.T, can Capabilities) {
	if can.Records < 0 {
		t.Skip("this store keeps any number of records")
	}
}

func needsCompact(t *testing.T, can Capabilities) {
	if can.Compact == nil {
		t.Skip("this store cannot be made to forget")
	}
}

// limit ends a test that hangs. It is no measure of anything, and far more
// than a benchmark takes.
const limit = 2 * time.Minute

// suite is one test at work: a store, and the words to check it in.
type suite struct {
	testing.TB
	store.Interface
	ctx context.Context
	can Capabilities
}

func newSuite(tb testing.TB, newStore New, can Capabilities) *suite {
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	tb.Cleanup(cancel)
	return &suite{TB: tb, Interface: newStore(tb), ctx: ctx, can: can}
}
