package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/store"
)

// TestNoRoomForAQuestion checks that a preview and LostInV1 need room as well.
// Without room the client may retry later.
func TestNoRoomForAQuestion(t *testing.T) {
	err := notCompiled(fmt.Errorf("%w: too many results", discovery.ErrOverBudget))
	if e, is := errors.AsType[*store.Error](err); !is || e.Kind != store.ErrUnavailable || !strings.Contains(e.Error(), "too many results") {
		t.Errorf("got %v", err)
	}
}
