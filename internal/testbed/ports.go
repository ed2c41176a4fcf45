package testbed

import (
	"net"
	"strconv"
	"sync"
)

// given holds the ports that FreePort has returned. The kernel may return a port again
// as long as nobody listens on it, and programs start concurrently.
var given = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// FreePort returns a loopback port on which nobody listens. It never returns a port
// twice. Another program may take the port first; then the program that should use it
// ends, and its starter reports that.
func FreePort() (int, error) {
	given.Lock()
	defer given.Unlock()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, err
		}
		if !given.ports[port] {
			given.ports[port] = true
			return port, nil
		}
	}
}

// FreeAddress returns a loopback address with a port from FreePort.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
