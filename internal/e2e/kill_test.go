package e2e

import (
	"net/http"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// A power cut in the middle of 1,000 creates takes nothing that was
// acknowledged and leaves nothing half-written.
func TestKilledWhileWriting(t *testing.T) {
	outside.Slow(t)
	const total, killAfter = 1000, 300
	pilot := openPilot(t, "--data-dir", t.TempDir())
	acknowledged := createUntilKilled(t, pilot, total, killAfter)
	if err := pilot.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored := rules(t, pilot)
	t.Logf("%d acknowledged, %d stored", len(acknowledged), len(stored))
	for i := range total {
		want := rule(i)
		got, ok := stored[want.Metadata.Name]
		switch {
		case !ok && acknowledged[i]:
			t.Errorf("%s was acknowledged and is gone", want.Metadata.Name)
		case ok && got != string(want.Spec):
			t.Errorf("%s is not what was sent: %s", want.Metadata.Name, got)
		}
		delete(stored, want.Metadata.Name)
	}
	for name := range stored {
		t.Errorf("%s was never sent", name)
	}
}

// createUntilKilled sends rules, a few at a time, until the server is killed
// after so many acknowledgements, and returns which were acknowledged.
func createUntilKilled(t *testing.T, pilot *Pilot, total, killAfter int) map[int]bool {
	t.Helper()
	var mu sync.Mutex
	acknowledged := map[int]bool{}
	var group errgroup.Group
	group.SetLimit(8)
	for i := range total {
		group.Go(func() error {
			status, body, err := create(t.Context(), pilot.URL+rulesPath, rule(i))
			if err != nil {
				return nil // The server is gone.
			}
			if status != http.StatusCreated {
				t.Errorf("create: status %d\n%s", status, body)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			acknowledged[i] = true
			if len(acknowledged) == killAfter {
				go pilot.Kill()
			}
			return nil
		})
	}
	group.Wait()
	<-pilot.Ended()
	return acknowledged
}
