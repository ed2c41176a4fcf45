package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery/stream"
)

// TestRemainsOfAFlappingProxy: what remains of the last stream of a proxy takes the place of
// what remained of earlier ones, and leaves room for other proxies.
func TestRemainsOfAFlappingProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Fleet
		var flapping, other Client
		last := &stream.Remains{}
		for range maxRemains + 10 {
			last = &stream.Remains{}
			f.Keep(&flapping, last)
		}
		if f.Remains(&flapping, nil) != last {
			t.Error("the last stream is not the one that counts")
		}
		if f.Keep(&other, &stream.Remains{}); f.Remains(&other, nil) == nil {
			t.Error("there is no room for another proxy")
		}
		if n := f.remains.Load(); n != 2 {
			t.Errorf("%d proxies are remembered, want 2", n)
		}
		time.Sleep(ReturnTime + time.Second)
		if f.Remains(&flapping, nil) != nil || f.Remains(&other, nil) != nil || f.remains.Load() != 0 {
			t.Error("something is kept for longer than ReturnTime")
		}
	})
}

// TestMostRemains: no more proxies are remembered than maxRemains, and those that are go on.
func TestMostRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Fleet
		all := make([]Client, maxRemains+1)
		for i := range all {
			f.Keep(&all[i], &stream.Remains{})
		}
		if f.Remains(&all[maxRemains], nil) != nil || f.Remains(&all[maxRemains-1], nil) == nil {
			t.Error("there is another number of proxies")
		}
		last := &stream.Remains{}
		if f.Keep(&all[0], last); f.Remains(&all[0], nil) != last {
			t.Error("a proxy that is remembered is not remembered anew")
		}
		time.Sleep(ReturnTime + time.Second)
	})
}
