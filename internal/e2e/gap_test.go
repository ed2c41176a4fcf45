package e2e

import (
	"context"
	"testing"
)

// TestNoGap: while rules come and go, each with clusters that Envoy has not
// had before, every request is answered.
func TestNoGap(t *testing.T) {
	t.Parallel()
	w := open(t, bookshop, proxyPort)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	statuses := make(chan map[int]int, 1)
	go func() {
		seen := map[int]int{}
		for i := 0; ctx.Err() == nil; i++ {
			answer, err := get("reviews")(i).send(t.Context(), w.client)
			if err != nil {
				t.Error(err)
				break
			}
			seen[answer.Status]++
		}
		statuses <- seen
	}()
	for _, rule := range []string{"all-to-v1", "half-v1-half-v3", "jason-to-v2", "all-to-v1", "mirror-to-v3"} {
		if err := w.Under(ctx, []string{rule}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if seen := <-statuses; len(seen) != 1 || seen[200] == 0 {
		t.Errorf("answers by status: %v, want only 200", seen)
	}
}
