package main

import "testing"

// TestGrowth: a small heap has the room, a large one grows by its share.
func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 4800, 24 << 20: 200, 120 << 20: heapGrowth, 4 << 30: heapGrowth} {
		if got := growth(live); got != want {
			t.Errorf("with %d MiB live: %d %%, want %d %%", live>>20, got, want)
		}
	}
}
