package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// grow takes memory, or fails the test.
func grow(t *testing.T, y *Body, bytes int64) {
	t.Helper()
	if err := y.Grow(t.Context(), bytes); err != nil {
		t.Fatal(err)
	}
}

// TestBodiesMakeRoom checks that a body gets room at the expense of the one that has
// held the most for the longest, and not of complete bodies.
func TestBodiesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(100)
		begin := func() *Body {
			var y *Body
			y = b.Begin(func() { go func() { time.Sleep(time.Millisecond); y.Leave() }() })
			return y
		}
		complete, slow, silent := begin(), begin(), begin()
		grow(t, complete, 50)
		complete.Arrived()
		grow(t, slow, 40)
		grow(t, silent, 1)
		time.Sleep(10 * time.Second)
		late := begin()
		grow(t, late, 30)
		if !slow.Cut() || silent.Cut() || complete.Cut() || late.Cut() {
			t.Errorf("cut: slow %v, silent %v, complete %v, late %v", slow.Cut(), silent.Cut(), complete.Cut(), late.Cut())
		}
		if err := slow.Grow(t.Context(), 1); !errors.Is(err, ErrCut) {
			t.Errorf("the one that was cut: %v", err)
		}
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			time.Sleep(10 * time.Second)
			complete.Leave()
		}()
		if err := late.Grow(ctx, 60); err != nil || silent.Cut() {
			t.Errorf("the worst one did not wait for one that is complete: %v", err)
		}
	})
}

// TestBodiesThatAllWait checks that bodies which fill the memory together do not wait
// for each other without end.
func TestBodiesThatAllWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(100)
		errs := make(chan error)
		for range 10 {
			y := b.Begin(func() {})
			grow(t, y, 10)
			go func() {
				err := y.Grow(t.Context(), 10)
				y.Arrived()
				time.Sleep(time.Second) // of decoding
				y.Leave()
				errs <- err
			}()
		}
		ok := 0
		for range 10 {
			if err := <-errs; err == nil {
				ok++
			} else if !errors.Is(err, ErrCut) {
				t.Error(err)
			}
		}
		if ok == 0 {
			t.Error("all bodies were cut")
		}
	})
}
