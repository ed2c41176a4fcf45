package ads

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/discovery"
)

// TestNoRoomIsResourceExhausted, which an Envoy logs and tries again after a while.
func TestNoRoomIsResourceExhausted(t *testing.T) {
	err := fmt.Errorf("%w for x: %w", discovery.ErrNotReady, discovery.ErrOverBudget)
	if got := status.Code((&Server{}).refuse(err)); got != codes.ResourceExhausted {
		t.Errorf("got %s", got)
	}
}
