package e2e

import (
	"context"
	"testing"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// startEtcd runs an etcd of one member, as a process of its own that ends with
// the test.
func startEtcd(t *testing.T) *testbed.Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	etcd, err := testbed.StartEtcd(ctx, t.TempDir(), 1)
	if etcd != nil {
		t.Cleanup(etcd.Close)
	}
	if err != nil {
		t.Fatal(err)
	}
	return etcd.Members[0]
}
