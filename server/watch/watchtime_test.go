package watch

import (
	"math"
	"testing"
	"time"
)

// TestWatchTime checks that no number of seconds means a short time, or none.
func TestWatchTime(t *testing.T) {
	const longest = math.MaxInt64 / int64(time.Second)
	for _, seconds := range []int64{1, 600, longest, longest + 1, 18_446_744_074, math.MaxInt64} {
		if got, want := int64(watchTime(seconds)/time.Second), min(seconds, longest); got != want {
			t.Errorf("%d seconds are taken for %d", seconds, got)
		}
	}
}
