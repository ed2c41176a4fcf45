package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// enterLong enters, or fails the test.
func enterLong(t *testing.T, l *Long) (leave func()) {
	t.Helper()
	leave, err := l.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

// TestLongWorkLeavesAProcessor checks that one of two processors is never used, and
// that work of any length begins once others have left.
func TestLongWorkLeavesAProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLong(2)
		leave := enterLong(t, l)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second one was answered %v", err)
		}
		leave()
		enterLong(t, l)()
	})
}

// TestLongWorkTakesItsShare checks that continuous work, in pieces of up to a
// second, gets a twentieth of the time of two processors, in addition to what was
// saved before.
func TestLongWorkTakesItsShare(t *testing.T) {
	const length = 5 * time.Minute
	for _, piece := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLong(2)
			worked := time.Duration(0)
			for begin := time.Now(); time.Since(begin) < length; worked += piece {
				leave := enterLong(t, l)
				time.Sleep(piece)
				leave()
			}
			least, most := 2*length/20, 2*length/20+2*longSavings+2*piece
			if worked < least-piece || worked > most {
				t.Errorf("in pieces of %v it worked %v of %v, want %v to %v", piece, worked, length, least, most)
			}
		})
	}
}

// TestLongWorkIsCounted checks that time passed to Spend delays later work.
func TestLongWorkIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLong(1)
		l.Spend(time.Second/2 + longSavings)
		begin := time.Now()
		enterLong(t, l)()
		if waited := time.Since(begin).Round(time.Second); waited != 10*time.Second {
			t.Errorf("half a second more than was saved was spent, and it waited %v, want 10s", waited)
		}
	})
}

// TestLongWorkOwesInBounds checks that very long work, once or repeatedly, does not
// keep others out.
func TestLongWorkOwesInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLong(2)
		for range 3 {
			l.Spend(time.Hour)
			time.Sleep(time.Second)
			l.Spend(time.Minute)
			begin := time.Now()
			enterLong(t, l)()
			if waited := time.Since(begin); waited > mostDebt {
				t.Errorf("it waited %v, want at most %v", waited, mostDebt)
			}
		}
	})
}

// TestLongWorkWaitsInBounds checks the bound on waiting callers.
func TestLongWorkWaitsInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLong(2)
		leave := enterLong(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		for range mostLong {
			go func() {
				if _, err := l.Enter(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("one that waited was answered %v", err)
				}
			}()
		}
		synctest.Wait()
		if _, err := l.Enter(ctx); !errors.Is(err, ErrCrowded) {
			t.Errorf("one more was answered %v", err)
		}
		cancel()
		synctest.Wait()
		leave()
		enterLong(t, l)()
	})
}

// TestPublishingWaitsForAProcessorAlone checks that EnterOwing does not wait for time to be
// made up for, or behind those who do, that it waits for long work that goes on, and that
// its time counts.
func TestPublishingWaitsForAProcessorAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLong(2)
		l.Spend(time.Second)
		entered := make(chan time.Time, 1)
		go func() {
			leave, err := l.Enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			entered <- time.Now()
			time.Sleep(time.Second)
			leave()
		}()
		synctest.Wait()
		began := time.Now()
		leave, err := l.EnterOwing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited %v for the time that others owe", waited)
		}
		time.Sleep(time.Second)
		leave()
		if waited := (<-entered).Sub(began); waited < 10*time.Second {
			t.Errorf("after another second of work the next one waited %v, want more than 10s", waited)
		}
		synctest.Wait()
		began = time.Now()
		if leave, err = l.EnterOwing(t.Context()); err != nil {
			t.Fatal(err)
		}
		leave()
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("beside long work it waited %v, want its second", waited)
		}
	})
}
