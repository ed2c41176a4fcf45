package main

import "testing"

// TestGrowth: a small heap has the room, a large one grows by its share.
func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 4800, 24 << 20: 200, 48 << 20: heapGrowth, 4 << 30: heapGrowth} {
		if got := growth(live); got != want {
			t.Errorf("with %d MiB live: %d %%, want %d %%", live>>20, got, want)
		}
	}
}

// TestRestBegins: once after each time of work, however long the rest.
func TestRestBegins(t *testing.T) {
	var r restDetector
	made := uint64(0)
	for i, step := range []struct {
		more uint64
		want bool
	}{
		{100 << 20, false}, {4 << 20, false}, {1 << 20, true}, {0, false}, {3 << 20, false},
		{5 << 20, false}, {0, true}, {0, false},
	} {
		made += step.more
		if got := r.begins(made); got != step.want {
			t.Errorf("step %d, with %d MiB more: rest begins: %v", i, step.more>>20, got)
		}
	}
}
