package feedback

import (
	"testing"
	"time"
)

// TestLeftMeanwhile: a stream that ends between being found and being counted is waited
// for by no change.
func TestLeftMeanwhile(t *testing.T) {
	var c Convergence
	ro := c.Begin(2, time.Now())
	gone := &Awaited{Over: OverADS}
	c.Depart(gone)
	c.Concern(ro, []*Awaited{gone})
	c.Seal(ro)
	if n := len(c.rollouts); n != 0 || gone.Pending.Load() {
		t.Errorf("%d changes wait for nobody", n)
	}
}
