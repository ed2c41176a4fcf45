package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/pilot-api/pilot-api/agent/capture"
	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// errSender means that a connection could not be made as a user.
var errSender = errors.New("connection of another user")

// nobody is the user of connections that are captured, if the caller is the proxy's user.
const nobody = 65534

// bypassTime is how long a trial waits for a connection that should not arrive.
const bypassTime = time.Second

// Connections makes connections of each kind that the settings capture, and some that they
// do not. wait is how long it waits for each.
func Connections(ctx context.Context, s *capture.Settings, wait time.Duration) (out []Result) {
	for _, family := range s.Families() {
		t := &trial{s: s, family: family, wait: wait, own: ownAddress(family)}
		out = append(out, t.outbound(ctx)...)
		out = append(out, t.inbound(ctx)...)
		out = append(out, t.dns(ctx)...)
	}
	return out
}

// trial are the trials of one family.
type trial struct {
	s      *capture.Settings
	family netfilter.Family
	wait   time.Duration
	own    netip.Addr // an address of the machine, or not valid
}

func (t *trial) subject(what string) string { return fmt.Sprintf("%s, IPv%d", what, t.family) }

// asProgram connects as a user whose connections are captured.
func (t *trial) asProgram(ctx context.Context, network, to string) error {
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	excluded := func(o netfilter.Owner) bool { return !o.Group && o.ID == uid || o.Group && o.ID == gid }
	switch {
	case len(t.s.Groups) > 0:
		uid, gid = nobody, t.s.Groups[0]
	case slices.ContainsFunc(t.s.Proxies, excluded) || slices.Contains(t.s.GroupsExcluded, gid):
		uid, gid = nobody, nobody
	default:
		return dial(ctx, network, to, t.wait)
	}
	return dialAs(ctx, uid, gid, network, to, t.wait)
}

// dial connects and closes the connection.
func dial(ctx context.Context, network, to string, wait time.Duration) error {
	dialer := net.Dialer{Timeout: wait}
	conn, err := dialer.DialContext(ctx, network, to)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// asProxy connects as the user of the proxy.
func (t *trial) asProxy(ctx context.Context, to string, wait time.Duration) error {
	proxy := t.s.Proxies[0].ID
	gid := proxy
	for _, owner := range t.s.Proxies {
		if owner.Group {
			gid = owner.ID
			break
		}
	}
	return dialAs(ctx, proxy, gid, network("tcp", t.family), to, wait)
}

// outbound tries a connection to another machine, as a program and as the proxy.
func (t *trial) outbound(ctx context.Context) []Result {
	to, ok := t.s.OutboundSample(t.family)
	if !ok {
		return nil
	}
	subject := t.subject("outbound")
	runs := t.listens(ctx, t.s.OutboundPort)
	out := []Result{runs}
	err := t.asProgram(ctx, network("tcp", t.family), to.String())
	switch {
	case unreachable(err):
		return append(out, skipped(subject, "the machine has no route to %s", to.Addr()))
	case errors.Is(err, errSender):
		return append(out, skipped(subject, "%v", err))
	case t.arrived(runs, err):
		out = append(out, passed(subject, "a connection to %s was captured", to))
	default:
		return append(out, failed(subject, "a connection to %s was not captured (%s); see the other lines, and if their advice does not help, the rules with nft list ruleset", to, reason(err)))
	}
	return append(out, t.bypass(ctx, runs, to))
}

// arrived reports whether a connection went to a port of the proxy: it is accepted if the
// proxy runs, and otherwise refused at once, which happens at no address of a sample.
func (t *trial) arrived(runs Result, err error) bool {
	if runs.State == Passed {
		return err == nil
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// bypass tries that a connection of the proxy leaves the machine. If it were captured, it
// would come back without end.
func (t *trial) bypass(ctx context.Context, runs Result, to netip.AddrPort) Result {
	subject := t.subject("the proxy's own")
	err := t.asProxy(ctx, to.String(), min(t.wait, bypassTime))
	switch {
	case errors.Is(err, errSender):
		return skipped(subject, "%v", err)
	case t.arrived(runs, err):
		return failed(subject, "a connection of the proxy's user to %s was captured; give install the user and group of the proxy (--proxy-uid, --proxy-gid)", to)
	}
	return passed(subject, "a connection of the proxy's user to %s was left alone", to)
}

// inbound tries a call of the proxy to its own machine, which is treated like a call from
// another machine. A connection from another machine cannot be made here. Whether the call is
// captured shows only if the proxy runs and no program listens at the port that is called.
func (t *trial) inbound(ctx context.Context) []Result {
	port, ok := t.s.InboundSample(t.own)
	if !ok {
		return nil
	}
	subject := t.subject("inbound")
	if !t.own.IsValid() {
		return []Result{skipped(subject, "the machine has no address but those of the loopback interface")}
	}
	runs := t.listens(ctx, t.s.InboundPort)
	out := []Result{runs}
	if runs.State != Passed {
		return append(out, skipped(subject, "it cannot be tried without the proxy"))
	}
	to := netip.AddrPortFrom(t.own, uint16(port))
	if t.asProgram(ctx, network("tcp", t.family), to.String()) == nil {
		return append(out, skipped(subject, "a program listens at %s, so it cannot be told whether it or the proxy accepts", to))
	}
	err := t.asProxy(ctx, to.String(), t.wait)
	switch {
	case errors.Is(err, errSender):
		return append(out, skipped(subject, "%v", err))
	case err == nil:
		return append(out, passed(subject, "a call of the proxy to %s was captured; calls from other machines are not tried", to))
	}
	return append(out, failed(subject, "a call of the proxy to %s was not captured (%s)", to, reason(err)))
}

// listens tells whether a program listens at a port of the proxy. The command must not listen
// there itself: a proxy that starts meanwhile would not get the port.
func (t *trial) listens(ctx context.Context, port int) Result {
	subject := t.subject(fmt.Sprintf("port %d", port))
	if err := dial(ctx, network("tcp", t.family), net.JoinHostPort(loopback(t.family), strconv.Itoa(port)), t.wait); err != nil {
		return failed(subject, "nothing listens (%s), so captured connections fail; start the proxy", reason(err))
	}
	return passed(subject, "a program listens")
}

// dns tries a question over TCP, as programs ask if an answer is long.
func (t *trial) dns(ctx context.Context) []Result {
	server, ok := t.s.DNSSample(t.family)
	if !ok {
		return nil
	}
	subject := t.subject("DNS")
	runs := t.listens(ctx, capture.ResolverPort)
	if runs.State == Failed {
		runs.Text = "nothing listens, so questions of DNS have no answer; start the agent"
	}
	err := t.asProgram(ctx, network("tcp", t.family), server.String())
	switch {
	case unreachable(err):
		return []Result{runs, skipped(subject, "the machine has no route to %s", server.Addr())}
	case errors.Is(err, errSender):
		return []Result{runs, skipped(subject, "%v", err)}
	case !t.s.DNS.All && err == nil:
		return []Result{runs, skipped(subject, "%s answers, and it cannot be told whether that is the server or the agent", server)}
	case t.arrived(runs, err):
		return []Result{runs, passed(subject, "a question to %s was captured", server)}
	}
	return []Result{runs, failed(subject, "a question to %s was not captured (%s)", server, reason(err))}
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

func unreachable(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// reason returns an error in words, also if there was none.
func reason(err error) string {
	switch {
	case err == nil:
		return "it was accepted"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "it had no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it was refused"
	}
	return err.Error()
}

// ownAddress returns an address of this machine that others can reach, or none.
func ownAddress(family netfilter.Family) netip.Addr {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}
	}
	for _, a := range addresses {
		block, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		address, _ := netip.AddrFromSlice(block.IP)
		address = address.Unmap()
		if address.IsGlobalUnicast() && address.Is4() == (family == netfilter.IPv4) && address != capture.OwnSource6().Addr() {
			return address
		}
	}
	return netip.Addr{}
}
