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
		slots := make(writeSlots, 2)
		first, second := slots.newSlot(), slots.newSlot() // The second is never done.
		for _, slot := range []*writeSlot{first, second} {
			if err := slot.take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				slot := slots.newSlot()
				if slot.take(t.Context()) != nil {
					return
				}
				order <- i
				time.Sleep(time.Millisecond) // of the bubble
				slot.end()
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
		time.Sleep(maxWrite)
		synctest.Wait()
		close(order)
		var wrote []int
		for i := range order {
			wrote = append(wrote, i)
		}
		if !slices.Equal(wrote, []int{0, 1, 2}) {
			t.Errorf("wrote in the order %v", wrote)
		}
		if len(slots) != 0 {
			t.Errorf("%d slots are still taken", len(slots))
		}
	})
}

func TestTurnOfWhoIsGone(t *testing.T) {
	slots := make(writeSlots, 1)
	if err := slots.newSlot().take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := slots.newSlot().take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("took a slot: %v", err)
	}
}

// TestSlotThatIsLateWhileItIsMade checks that on a busy machine the timer of a slot
// may fire before the slot is complete.
func TestSlotThatIsLateWhileItIsMade(t *testing.T) {
	slots := make(writeSlots, 1)
	unfinished := &writeSlot{slots: slots}
	unfinished.release()
	if len(slots) != 0 {
		t.Error("a slot that nobody took is taken")
	}
}
