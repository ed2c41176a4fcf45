package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/pilot-api/pilot-api/internal/outside"
)

const counted = "example.com/count"

// TestUpdateLoops checks that no update is lost or done twice when many clients
// count in one object, each by reading it, adding one, and retrying after a
// conflict.
func TestUpdateLoops(t *testing.T) {
	outside.Slow(t)
	const clients, steps = 8, 25
	s := startShaken(t)
	rules := s.writer.Namespace("default")
	made, err := rules.Create(t.Context(), ruleObject("counter", "red", 0), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patience := wait.Backoff{Duration: time.Millisecond, Factor: 1, Jitter: 1, Steps: 1 << 20}
	var conflicts atomic.Int64
	var all errgroup.Group
	for range clients {
		mine := s.client(s.back.URL).Resource(servertest.RuleResource).Namespace("default")
		all.Go(func() error {
			next := made // All start with the same one.
			for range steps {
				err := retry.RetryOnConflict(patience, func() (err error) {
					if next == nil {
						if next, err = mine.Get(t.Context(), "counter", metav1.GetOptions{}); err != nil {
							return err
						}
					}
					next = next.DeepCopy()
					count, _ := strconv.Atoi(next.GetAnnotations()[counted])
					next.SetAnnotations(map[string]string{counted: strconv.Itoa(count + 1)})
					_, err = mine.Update(t.Context(), next, metav1.UpdateOptions{})
					if next = nil; apierrors.IsConflict(err) {
						conflicts.Add(1)
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if conflicts.Load() < clients-1 {
		t.Errorf("%d conflicts, and %d began with the same version", conflicts.Load(), clients)
	}
	wantCount(t, rules, clients*steps)
}

func wantCount(t *testing.T, rules dynamic.ResourceInterface, want int) {
	t.Helper()
	end, err := rules.Get(t.Context(), "counter", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := end.GetAnnotations()[counted]; got != strconv.Itoa(want) {
		t.Errorf("counted to %s, want %d", got, want)
	}
}
