package testbed

import (
	"net"
	"strconv"
	"sync"
)

// given are the ports that FreePort has returned. The kernel may name one again
// as long as nobody listens on it, and programs start side by side.
var given = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// FreePort returns a loopback port that nobody listens on, and never the same
// twice. Another program may take it before its user does; who starts that user
// then sees it end and says so.
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

// FreeAddress is a loopback address with such a port.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
