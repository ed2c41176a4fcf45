package watch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns checks that no more watches write at a time than allowed, in the order
// in which they came, and that those which wait for their clients delay the others
// only for a limited time.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := make(turns, 2)
		first, second := turns.turn(), turns.turn() // The second is never done.
		for _, turn := range []*turn{first, second} {
			if err := turn.take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				turn := turns.turn()
				if turn.take(t.Context()) != nil {
					return
				}
				order <- i
				time.Sleep(time.Millisecond) // of the bubble
				turn.end()
			}()
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Errorf("%d wrote beside two others", len(order))
		}
		first.end()
		first.end() // Once is enough.
		synctest.Wait()
		if len(order) != 1 {
			t.Errorf("%d wrote after one was done", len(order))
		}
		time.Sleep(maxTurn)
		synctest.Wait()
		close(order)
		var wrote []int
		for i := range order {
			wrote = append(wrote, i)
		}
		if !slices.Equal(wrote, []int{0, 1, 2}) {
			t.Errorf("wrote in the order %v", wrote)
		}
		if len(turns) != 0 {
			t.Errorf("%d turns are still taken", len(turns))
		}
	})
}

func TestTurnOfWhoIsGone(t *testing.T) {
	turns := make(turns, 1)
	if err := turns.turn().take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := turns.turn().take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("took a turn: %v", err)
	}
}

// TestTurnThatIsLateWhileItIsMade checks that on a busy machine the timer of a turn
// may fire before the turn is complete.
func TestTurnThatIsLateWhileItIsMade(t *testing.T) {
	turns := make(turns, 1)
	unfinished := &turn{line: turns}
	unfinished.release()
	if len(turns) != 0 {
		t.Error("a turn that nobody took is taken")
	}
}
