package xds

import (
	"sync/atomic"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 1000} {
		done := make([]atomic.Int64, n)
		spread(n, func(i int) { done[i].Add(1) })
		for i := range done {
			if times := done[i].Load(); times != 1 {
				t.Errorf("%d of %d: done %d times", i, n, times)
			}
		}
	}
}

func TestSpreadPanics(t *testing.T) {
	defer func() {
		if recover() != "no" {
			t.Error("a panic is lost")
		}
	}()
	spread(1000, func(i int) {
		if i == 700 {
			panic("no")
		}
	})
}
