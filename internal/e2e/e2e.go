// Package e2e is the whole path on real parts: it starts the programs as a
// user would, routes requests through a real Envoy, and says whether what
// should happen did. It knows the programs by their commands and their wire
// formats only and imports none of their code.
//
// From small to large: Pilot is a pilot-api, Sidecar an Envoy, Shop the services of a registry file; a World is
// one of each, made from a Setting on addresses of its own, so that any number
// can stand side by side. A Row is a routing rule with what should come of it;
// Play tries one in a World. The demo prints the rows (internal/e2e/demo), the
// tests assert them, by every way in: the HTTP proxy port of an Envoy that polls
// REST v3, and as captured traffic an Envoy that lives on v1 answers
// (internal/e2e/bridge).
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// patience bounds every wait for a program to come round. It is no measure of
// speed: a busy machine must not fail a test.
const patience = 30 * time.Second

// Programs says where the executables are.
type Programs struct {
	PilotAPI, Istioctl, Envoy string

	EnvoyFlags []string // of each Envoy, beside those that every one has
}

// Missing returns an error that names the programs that are not there.
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

// until waits for the program no longer than our patience lasts.
func until(ctx context.Context, what string, p *testbed.Process, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Until(ctx, what, try)
}
