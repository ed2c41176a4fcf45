package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// capNetAdmin is the number of the capability CAP_NET_ADMIN.
const capNetAdmin = 12

// ErrRights means that the process may not change the packet filter.
var ErrRights = errors.New("the capability CAP_NET_ADMIN is missing: run as root, or give it to the process (AmbientCapabilities=CAP_NET_ADMIN of a systemd unit, --cap-add NET_ADMIN of a container)")

// mayChange returns an error if the process may not change the packet filter.
func mayChange() error {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return fmt.Errorf("capture works on Linux only: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			if err != nil {
				return err
			}
			if set&(1<<capNetAdmin) == 0 {
				return ErrRights
			}
			return nil
		}
	}
	return errors.New("/proc/thread-self/status has no line CapEff")
}

// lock keeps other processes of this network namespace from changing the packet filter by
// this package. Its name belongs to the namespace, and the kernel frees it when the process
// ends.
func lock() (release func(), err error) {
	l, err := net.Listen("unix", "@pilot-agent-capture")
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errors.New("another pilot-agent is changing the rules right now; try again")
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = l.Close() }, nil
}
