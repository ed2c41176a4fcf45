package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// StartSidecar runs an Envoy for the node with a bootstrap from istioctl with the given
// options, and returns when it is live. Its log and its bootstrap are in dir.
func StartSidecar(ctx context.Context, pilot *Pilot, dir, node string, options ...string) (*Sidecar, error) {
	admin, err := testbed.FreePort()
	if err != nil {
		return nil, err
	}
	args := []string{"bootstrap", node, "--admin-port", strconv.Itoa(admin)}
	s := &Sidecar{Node: node, Admin: fmt.Sprintf("http://127.0.0.1:%d", admin), offered: pilot.streamed(node)}
	if polls(options) {
		args = append(args, "--refresh-delay", "200ms")
	} else if !slices.Contains(options, "--xds") {
		args = append(args, "--xds", pilot.XDS)
	}
	bootstrap, err := pilot.Istioctl(ctx, append(args, options...)...)
	if err != nil {
		return nil, err
	}
	if polls(options) {
		poller, err := newRESTPoller(pilot, bootstrap)
		if err != nil {
			return nil, err
		}
		s.offered = poller.offered
	}
	return s, s.run(ctx, pilot.programs, dir, bootstrap)
}

// polls reports whether the options of istioctl bootstrap are for an Envoy that polls.
func polls(options []string) bool {
	api := slices.Index(options, "--api")
	return api >= 0 && options[api+1] == "rest"
}
