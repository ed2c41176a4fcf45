// Package e2e tests the whole path with real parts. It starts the programs as a user
// would, routes requests through a real Envoy, and compares the effects with the expected
// ones. It uses only the programs' commands and wire formats, and imports none of their
// code.
//
// From small to large: Pilot is a pilot-api, Sidecar an Envoy, and Shop the services of a
// registry file. A World is one of each, made from a Setting with addresses of its own, so
// any number of Worlds can run at once. A Row is a routing rule with its expected effect.
// Play tries one in a World. The demo prints the rows (internal/e2e/demo). The tests
// assert them in two ways: through the HTTP proxy port of an Envoy that polls REST v3, and
// with captured traffic through an Envoy that uses v1 answers (internal/e2e/bridge).
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// patience bounds every wait for a program. It does not measure speed: a test must not
// fail because a machine is busy.
const patience = 30 * time.Second

// Programs says where the executables are.
type Programs struct {
	PilotAPI, Istioctl, Envoy string

	EnvoyFlags []string // of each Envoy, besides the common ones
}

// Missing returns an error that names the programs that do not exist.
func (p Programs) Missing() error {
	var errs []error
	for _, path := range []string{p.PilotAPI, p.Istioctl, p.Envoy} {
		_, err := os.Stat(path)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: run make build tools", err)
	}
	return nil
}

// until waits for the program, at most for patience.
func until(ctx context.Context, what string, p *testbed.Process, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Until(ctx, what, try)
}
