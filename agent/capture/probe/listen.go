package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// place is a port at which captured connections arrive. If the proxy does not listen there,
// place does.
type place struct {
	port     int
	listener net.Listener // nil if the proxy listens
	arrived  chan netip.AddrPort
}

// take listens at a port of the loopback interface, unless another program does. close ends
// it.
func take(ctx context.Context, family netfilter.Family, port int) (*place, error) {
	p := &place{port: port, arrived: make(chan netip.AddrPort, 16)}
	var config net.ListenConfig
	l, err := config.Listen(ctx, network("tcp", family), net.JoinHostPort(loopback(family), strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return p, nil
	case err != nil:
		return nil, err
	}
	p.listener = l
	go p.accept()
	return p, nil
}

func (p *place) close() {
	if p.listener != nil {
		_ = p.listener.Close()
	}
}

// accept notes where connections were meant to go. It ends when the listener is closed.
func (p *place) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		to, err := originalDestination(conn.(*net.TCPConn))
		_ = conn.Close()
		if err != nil {
			continue
		}
		select {
		case p.arrived <- to:
		default: // Other programs connect, too. Those of a trial are read at once.
		}
	}
}

// expect reports whether a connection that was meant for a destination arrives in time.
func (p *place) expect(ctx context.Context, to netip.AddrPort, wait time.Duration) bool {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		select {
		case got := <-p.arrived:
			if got == to {
				return true
			}
		case <-timeout.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func network(name string, family netfilter.Family) string {
	return name + strconv.Itoa(int(family))
}

func loopback(family netfilter.Family) string {
	if family == netfilter.IPv6 {
		return "::1"
	}
	return "127.0.0.1"
}

// soOriginalDst is the option SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST of Linux.
const soOriginalDst = 80

// originalDestination asks the kernel where a connection went before it was redirected.
func originalDestination(conn *net.TCPConn) (to netip.AddrPort, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return to, err
	}
	local := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	inner := raw.Control(func(fd uintptr) {
		// The types of these functions have room for the addresses that the kernel writes.
		if local.Is4() {
			var got *syscall.IPv6Mreq
			if got, err = syscall.GetsockoptIPv6Mreq(int(fd), syscall.IPPROTO_IP, soOriginalDst); err == nil {
				a := got.Multiaddr // sockaddr_in: family, port, address
				to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[4:8])), uint16(a[2])<<8|uint16(a[3]))
			}
			return
		}
		var got *syscall.IPv6MTUInfo
		if got, err = syscall.GetsockoptIPv6MTUInfo(int(fd), syscall.IPPROTO_IPV6, soOriginalDst); err == nil {
			port := got.Addr.Port
			to = netip.AddrPortFrom(netip.AddrFrom16(got.Addr.Addr), port<<8|port>>8)
		}
	})
	return to, errors.Join(inner, err)
}
