package etcd

import (
	"errors"
	"testing"
)

// TestTroubleIsSaidOnce also checks that an error is reported again when it comes back.
func TestTroubleIsSaidOnce(t *testing.T) {
	full, broken := errors.New("full"), errors.New("broken")
	var said trouble
	for i, turn := range []struct {
		err  error
		want bool
	}{{nil, false}, {full, true}, {full, false}, {broken, true}, {nil, false}, {broken, true}, {broken, false}} {
		if got := said.isNew(turn.err); got != turn.want {
			t.Errorf("turn %d, %v: said %t", i, turn.err, got)
		}
	}
}
