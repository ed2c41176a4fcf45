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
	at, err := take(ctx, t.family, t.s.OutboundPort)
	if err != nil {
		return []Result{skipped(subject, "port %d: %v", t.s.OutboundPort, err)}
	}
	defer at.close()
	out := []Result{t.listens(at)}
	err = t.asProgram(ctx, network("tcp", t.family), to.String())
	switch {
	case unreachable(err):
		return append(out, skipped(subject, "the machine has no route to %s", to.Addr()))
	case errors.Is(err, errSender):
		return append(out, skipped(subject, "%v", err))
	case at.listener != nil && at.expect(ctx, to, t.wait), at.listener == nil && err == nil:
		out = append(out, passed(subject, "a connection to %s arrived at port %d", to, at.port))
	default:
		return append(out, failed(subject, "a connection to %s did not arrive at port %d (%s); see the other lines, and if their advice does not help, the rules with nft list ruleset", to, at.port, reason(err)))
	}
	return append(out, t.bypass(ctx, at, to))
}

// bypass tries that a connection of the proxy leaves the machine. If it were captured, it
// would come back without end.
func (t *trial) bypass(ctx context.Context, at *place, to netip.AddrPort) Result {
	subject := t.subject("the proxy's own")
	err := t.asProxy(ctx, to.String(), min(t.wait, bypassTime))
	switch {
	case errors.Is(err, errSender):
		return skipped(subject, "%v", err)
	case at.listener != nil && at.expect(ctx, to, min(t.wait, bypassTime)), at.listener == nil && err == nil:
		return failed(subject, "a connection of the proxy's user to %s was captured; give install the user and group of the proxy (--proxy-uid, --proxy-gid)", to)
	}
	return passed(subject, "a connection of the proxy's user to %s was left alone", to)
}

// inbound tries a call of the proxy to its own machine, which is treated like a call from
// another machine. A connection from another machine cannot be made here.
func (t *trial) inbound(ctx context.Context) []Result {
	port, ok := t.s.InboundSample(t.own)
	if !ok {
		return nil
	}
	subject := t.subject("inbound")
	if !t.own.IsValid() {
		return []Result{skipped(subject, "the machine has no address but those of the loopback interface")}
	}
	at, err := take(ctx, t.family, t.s.InboundPort)
	if err != nil {
		return []Result{skipped(subject, "port %d: %v", t.s.InboundPort, err)}
	}
	defer at.close()
	out := []Result{t.listens(at)}
	to := netip.AddrPortFrom(t.own, uint16(port))
	if at.listener == nil && dial(ctx, network("tcp", t.family), to.String(), t.wait) == nil {
		return append(out, skipped(subject, "a program listens at %s, so it cannot be told whether it or the proxy accepts", to))
	}
	err = t.asProxy(ctx, to.String(), t.wait)
	switch {
	case errors.Is(err, errSender):
		return append(out, skipped(subject, "%v", err))
	case at.listener != nil && at.expect(ctx, to, t.wait), at.listener == nil && err == nil:
		return append(out, passed(subject, "a call of the proxy to %s arrived at port %d; calls from other machines are not tried", to, at.port))
	}
	return append(out, failed(subject, "a call of the proxy to %s did not arrive at port %d (%s)", to, at.port, reason(err)))
}

// listens tells whether the proxy does.
func (t *trial) listens(at *place) Result {
	subject := t.subject(fmt.Sprintf("port %d", at.port))
	if at.listener == nil {
		return passed(subject, "a program listens")
	}
	return failed(subject, "nothing listens, so captured connections fail; start the proxy")
}

// dns tries a question over UDP.
func (t *trial) dns(ctx context.Context) []Result {
	server, ok := t.s.DNSSample(t.family)
	if !ok {
		return nil
	}
	subject := t.subject("DNS")
	at, err := net.ListenPacket(network("udp", t.family), net.JoinHostPort(loopback(t.family), strconv.Itoa(capture.ResolverPort)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return []Result{skipped(subject, "the resolver runs, so a question that arrives there cannot be seen")}
	case err != nil:
		return []Result{skipped(subject, "%v", err)}
	}
	defer at.Close()
	out := []Result{failed(t.subject(fmt.Sprintf("port %d", capture.ResolverPort)), "nothing listens, so questions of DNS have no answer; start the agent")}
	if err := t.ask(ctx, server); unreachable(err) {
		return append(out, skipped(subject, "the machine has no route to %s", server.Addr()))
	} else if err != nil {
		return append(out, skipped(subject, "%v", err))
	}
	_ = at.SetReadDeadline(time.Now().Add(t.wait))
	if _, _, err := at.ReadFrom(make([]byte, 512)); err != nil {
		return append(out, failed(subject, "a question to %s did not arrive at port %d", server, capture.ResolverPort))
	}
	return append(out, passed(subject, "a question to %s arrived at port %d", server, capture.ResolverPort))
}

// ask sends a packet that no server takes for a question.
func (t *trial) ask(ctx context.Context, server netip.AddrPort) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network("udp", t.family), server.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte{0})
	return err
}

func unreachable(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// reason returns an error in words, also if there was none.
func reason(err error) string {
	switch {
	case err == nil:
		return "it went elsewhere"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "it had no answer in time"
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
