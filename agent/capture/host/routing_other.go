//go:build !linux

package host

import (
	"errors"

	"github.com/pilot-api/pilot-api/agent/capture"
)

var errNotLinux = errors.New("capture works on Linux only")

func putRouting(wanted) (undo func() error, err error) {
	return func() error { return nil }, errNotLinux
}

func removeRouting(capture.Routing, bool, bool) ([]string, error) { return nil, errNotLinux }

func routingText() ([]string, error) { return nil, errNotLinux }
