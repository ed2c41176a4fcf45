//go:build linux

// Package netspace makes network namespaces for tests: machines of their own with a cable
// between them. Tests need the rights of root, and are skipped without them, or fail if CI is
// set.
//
// A namespace belongs to a thread. Do runs a function on a thread within one; sockets that it
// opens, and programs that it starts, are in the namespace.
package netspace

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// Machine is a network namespace.
type Machine struct {
	t  testing.TB
	ns netns.NsHandle
	// IPv4 and IPv6 are the addresses of its end of the cable.
	IPv4, IPv6 string
	// Interface is the name of its end of the cable.
	Interface string
}

// Pair returns two machines with a cable between them. Each has the other as its gateway, so
// that it has a route to every address.
func Pair(t testing.TB) (a, b *Machine) {
	t.Helper()
	a = &Machine{t: t, IPv4: "10.78.0.1", IPv6: "fd78::1", Interface: "eth0"}
	b = &Machine{t: t, IPv4: "10.78.0.2", IPv6: "fd78::2", Interface: "eth0"}
	a.create()
	b.create()
	a.Do(func() { a.must("cable", netlink.LinkAdd(cable(b.ns))) })
	for m, other := range map[*Machine]*Machine{a: b, b: a} {
		m.Do(func() { m.connect(other) })
	}
	return a, b
}

// Alone returns a machine that has only its loopback interface.
func Alone(t testing.TB) *Machine {
	t.Helper()
	m := &Machine{t: t}
	m.create()
	return m
}

var cables atomic.Int32

// cable returns a pair of interfaces, of which one is in this namespace and the other one in
// another.
func cable(other netns.NsHandle) *netlink.Veth {
	link := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "eth0", PeerNamespace: netlink.NsFd(int(other))}
	link.Name = "eth0"
	link.HardwareAddr = net.HardwareAddr{0x02, 0, 0, 0, 0, byte(cables.Add(1))}
	return link
}

func (m *Machine) create() {
	m.t.Helper()
	if os.Geteuid() != 0 {
		outside.Missing(m.t, "the rights of root, to make network namespaces")
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // The thread ends with this goroutine.
		ns, err := netns.New()
		m.ns = ns
		failed <- err
	}()
	if err := <-failed; err != nil {
		outside.Missing(m.t, fmt.Sprintf("the right to make network namespaces (%v)", err))
	}
	m.t.Cleanup(func() { _ = m.ns.Close() })
	m.Do(func() { m.up("lo") })
}

func (m *Machine) connect(other *Machine) {
	link := m.link("eth0")
	for _, address := range []string{m.IPv4 + "/24", m.IPv6 + "/64"} {
		parsed, err := netlink.ParseAddr(address)
		m.must(address, err)
		parsed.Flags = syscall.IFA_F_NODAD
		m.must(address, netlink.AddrAdd(link, parsed))
	}
	m.up("eth0")
	for _, gateway := range []string{other.IPv4, other.IPv6} {
		m.must("route", netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gateway)}))
	}
}

func (m *Machine) link(name string) netlink.Link {
	link, err := netlink.LinkByName(name)
	m.must(name, err)
	return link
}

func (m *Machine) up(name string) { m.must(name, netlink.LinkSetUp(m.link(name))) }

// must fails the test. It panics, because it runs on threads of the machine.
func (m *Machine) must(what string, err error) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v", what, err))
	}
}

// Do runs a function on a thread within the machine and waits for it. The function must not
// end the test.
func (m *Machine) Do(f func()) {
	m.t.Helper()
	done := make(chan any)
	go func() {
		runtime.LockOSThread() // The thread ends with this goroutine.
		defer func() { done <- recover() }()
		if err := netns.Set(m.ns); err != nil {
			panic(err)
		}
		f()
	}()
	if failure := <-done; failure != nil {
		m.t.Fatalf("on a machine of the test: %v", failure)
	}
}

// As is Do with the user and group of sockets that the function opens. Rights stay.
func (m *Machine) As(uid, gid uint32, f func()) {
	m.t.Helper()
	m.Do(func() {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSGID, uintptr(gid), 0, 0)
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(uid), 0, 0)
		f()
	})
}
