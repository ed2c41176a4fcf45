package wait

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAbsence: who is away is waited for, and not for ever.
func TestAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := func(a *absence, proxies int, want bool) {
			t.Helper()
			if got := a.away(proxies); got != want {
				t.Errorf("of %d proxies some are away: %v, want %v", proxies, got, want)
			}
		}
		var a absence
		look(&a, 0, false) // There never were any.
		look(&a, 3, false)
		look(&a, 2, false) // One has left.
		a.amiss = true
		look(&a, 0, true)
		look(&a, 1, true)
		look(&a, 2, false)
		time.Sleep(returnTime)
		look(&a, 1, false)
		look(&a, 0, true) // All at once, between two looks.
		time.Sleep(returnTime - time.Second)
		look(&a, 0, true)
		time.Sleep(time.Second)
		look(&a, 0, false)
		a.amiss = true
		look(&a, 0, true) // Who would be there is not known.
		time.Sleep(returnTime)
		look(&a, 0, false)
	})
}
