package ads

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/discovery"
)

// TestNoRoomIsResourceExhausted checks the code, which an Envoy logs before it
// retries.
func TestNoRoomIsResourceExhausted(t *testing.T) {
	err := fmt.Errorf("%w for x: %w", discovery.ErrNotReady, discovery.ErrOverBudget)
	if got := status.Code((&Server{}).refuse(err)); got != codes.ResourceExhausted {
		t.Errorf("got %s", got)
	}
}
