package testbed

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pilot-api/pilot-api/internal/outside"
)

func TestMain(m *testing.M) {
	RunMember()
	os.Exit(m.Run())
}

// TestCut: a member that is cut off cannot answer what needs the others, in
// either way of being cut off, and can again when it is healed.
func TestCut(t *testing.T) {
	outside.Slow(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := StartEtcd(ctx, t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const one = 1
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Members[one].Client}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	get := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := client.Get(ctx, "k")
		return err
	}
	for _, mode := range []Mode{Silent, Refusing} {
		e.Cut(one, mode)
		// What was on its way when it was cut may still come through.
		if err := Until(ctx, "no answer", func(context.Context) error {
			if get(2*time.Second) == nil {
				return fmt.Errorf("%s: it answers", mode)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		e.Cut(one, Open)
		if err := Until(ctx, "an answer", func(context.Context) error { return get(5 * time.Second) }); err != nil {
			t.Fatalf("after %s: %v", mode, err)
		}
	}
}
