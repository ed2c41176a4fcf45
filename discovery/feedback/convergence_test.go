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

// TestSilentMeanwhile: a look at the silent proxies between a proxy being found and being
// counted does not keep a later look from ending the wait for it.
func TestSilentMeanwhile(t *testing.T) {
	var c Convergence
	ro := c.Begin(2, time.Now())
	silent := &Awaited{Silent: func() bool { return true }}
	c.Poll(silent, OverREST)
	c.Dismiss()
	c.Concern(ro, []*Awaited{silent})
	c.Seal(ro)
	c.Dismiss()
	if n := len(c.rollouts); n != 0 || silent.Pending.Load() {
		t.Errorf("%d changes wait for a proxy that is silent", n)
	}
}
