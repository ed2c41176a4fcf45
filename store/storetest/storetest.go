// Package storetest is the contract of package store as a test suite. Each
// implementation runs it in its own tests:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(testing.TB) store.Interface { return memory.New() }, storetest.Capabilities{})
//	}
//
// The benchmarks are shared too, so that implementations can be compared.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/store"
)

// Capabilities say what a store can do beyond the minimum, and what it cannot do.
type Capabilities struct {
	// Compact makes the store drop the changes up to a revision. If it is nil, the
	// tests that need it are skipped.
	Compact func(tb testing.TB, s store.Interface, revision int64)
	// Ops is the maximum number of operations in a transaction; 0 means MaxTxnOps.
	Ops int
	// Replaced says that the store fills store.Replaced.
	Replaced bool
	// Records is the number of records kept for an object; 0 means 10, -1 any number.
	Records int
	// Settle makes the store drop at once everything that it drops in the background. It is
	// nil if there is nothing to drop.
	Settle func(tb testing.TB, s store.Interface)
}

// New returns an empty store for one test.
type New func(tb testing.TB) store.Interface

// Run checks the whole contract of store.Interface on stores that newStore returns.
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
		{"Replaced", replacedCases},
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

// testCase checks one rule of the contract.
type testCase struct {
	name  string
	needs func(t *testing.T, can Capabilities) // skips the test if a capability is missing
	run   func(s *suite)
}

func needsBound(t *testing.T, can Capabilities) {
	if can.Records < 0 {
		t.Skip("this store keeps any number of records")
	}
}

func needsReplaced(t *testing.T, can Capabilities) {
	if !can.Replaced {
		t.Skip("this store does not say what a write replaced")
	}
}

func needsCompact(t *testing.T, can Capabilities) {
	if can.Compact == nil {
		t.Skip("this store cannot be made to forget")
	}
}

// limit ends a test that hangs. It measures nothing, and is far more than a benchmark
// takes.
const limit = 2 * time.Minute

// suite is a running test: a store and helper methods.
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
