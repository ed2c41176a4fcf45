//go:build linux

package host

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/agent/capture"
	"github.com/pilot-api/pilot-api/internal/netspace"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// byProgram are the programs by which rules are installed.
var byProgram = map[string]Choice{
	"nft":             {},
	"iptables-nft":    {Variant: "nft", NFT: new(bool)},
	"iptables-legacy": {Variant: "legacy", NFT: new(bool)},
}

func needPrograms(t *testing.T) {
	t.Helper()
	for _, name := range []string{"nft", "iptables-nft-restore", "ip6tables-nft-restore", "iptables-legacy-restore", "ip6tables-legacy-restore"} {
		if program(name) == "" {
			outside.Missing(t, name+" (packages nftables and iptables)")
		}
	}
}

func settings(t testing.TB, args ...string) *capture.Settings {
	t.Helper()
	var f capture.Flags
	set := pflag.NewFlagSet("capture", pflag.ContinueOnError)
	f.Register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	s, err := f.Parse(capture.ThisMachine(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	proxyUser = 1337
	appUser   = 1000
)

// vm is a machine with a workload and something in the place of its proxy, and another
// machine that calls it.
type vm struct {
	t         *testing.T
	at, other *netspace.Machine
	tproxy    bool
}

func newVM(t *testing.T, tproxy bool) *vm {
	t.Helper()
	needPrograms(t)
	v := &vm{t: t, tproxy: tproxy}
	v.other, v.at = netspace.Pair(t)
	v.at.Do(func() {
		v.serve(8080, 0, func(c net.Conn) { fmt.Fprintf(c, "workload sees %s", hostOf(c.RemoteAddr())) })
		v.serve(22, 0, func(c net.Conn) { fmt.Fprint(c, "ssh here") })
		v.serve(8082, 0, func(c net.Conn) { fmt.Fprint(c, "container") })
		v.serve(15001, 0, func(c net.Conn) { fmt.Fprintf(c, "outbound to %s", destination(c)) })
		v.serve(15006, transparency(tproxy), v.inbound)
	})
	v.other.Do(func() {
		v.serve(9090, 0, func(c net.Conn) { fmt.Fprint(c, "other machine") })
		v.serve(22, 0, func(c net.Conn) { fmt.Fprint(c, "ssh there") })
	})
	return v
}

func transparency(on bool) int {
	if on {
		return 1
	}
	return 0
}

// serve answers connections at a port of the calling thread's machine, until the test ends.
func (v *vm) serve(port, transparent int, answer func(net.Conn)) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return setTransparent(raw, transparent) }}
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := config.Listen(v.t.Context(), network, fmt.Sprintf(":%d", port))
		if err != nil {
			panic(err)
		}
		v.t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					answer(conn)
				}()
			}
		}()
	}
}

func setTransparent(raw syscall.RawConn, on int) (err error) {
	if on == 0 {
		return nil
	}
	const ipv6Transparent = 75
	inner := raw.Control(func(fd uintptr) {
		if err = syscall.SetsockoptInt(int(fd), syscall.SOL_IPV6, ipv6Transparent, 1); err != nil {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_IP, syscall.IP_TRANSPARENT, 1)
		}
	})
	if inner != nil {
		return inner
	}
	return err
}

// inbound does what a proxy does with an inbound connection: it calls the workload, from an
// address that is not captured again, or with that of the caller.
func (v *vm) inbound(c net.Conn) {
	to := destination(c)
	source := "127.0.0.6"
	if to.Addr().Is6() {
		source = "::6"
	}
	dialer := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	if v.tproxy && hostOf(c.RemoteAddr()) != to.Addr().String() {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(hostOf(c.RemoteAddr()))}
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			if err := setTransparent(raw, 1); err != nil {
				return err
			}
			var err error
			inner := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_MARK, 1337) })
			if inner != nil {
				return inner
			}
			return err
		}
	}
	v.at.As(proxyUser, proxyUser, func() {
		answer, err := dialer.Dial("tcp", to.String())
		if err != nil {
			fmt.Fprintf(c, "inbound to %s: %v", to, err)
			return
		}
		defer answer.Close()
		_ = answer.SetDeadline(time.Now().Add(5 * time.Second))
		text, err := io.ReadAll(answer)
		fmt.Fprintf(c, "inbound to %s: %s", to, text)
		if err != nil {
			fmt.Fprintf(c, " %v", err)
		}
	})
}

func hostOf(a net.Addr) string { return a.(*net.TCPAddr).AddrPort().Addr().Unmap().String() }

// destination returns where a connection was meant to go.
func destination(c net.Conn) (to netip.AddrPort) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		panic(err)
	}
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	const soOriginalDst = 80
	_ = raw.Control(func(fd uintptr) {
		if local.Addr().Unmap().Is4() {
			if got, err := syscall.GetsockoptIPv6Mreq(int(fd), syscall.IPPROTO_IP, soOriginalDst); err == nil {
				a := got.Multiaddr
				to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[4:8])), uint16(a[2])<<8|uint16(a[3]))
			}
			return
		}
		if got, err := syscall.GetsockoptIPv6MTUInfo(int(fd), syscall.IPPROTO_IPV6, soOriginalDst); err == nil {
			to = netip.AddrPortFrom(netip.AddrFrom16(got.Addr.Addr), got.Addr.Port<<8|got.Addr.Port>>8)
		}
	})
	if !to.IsValid() {
		return netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	}
	return to
}

// ask connects and returns what the other side says.
func (v *vm) ask(from *netspace.Machine, user uint32, host string, port int) (answer string) {
	v.t.Helper()
	from.As(user, user, func() {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(port)), 5*time.Second)
		if err != nil {
			answer = err.Error()
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		text, err := io.ReadAll(conn)
		if answer = string(text); err != nil {
			answer += " " + err.Error()
		}
	})
	return answer
}

// want checks an answer.
func (v *vm) want(from *netspace.Machine, user uint32, host string, port int, want string) {
	v.t.Helper()
	if got := v.ask(from, user, host, port); got != want {
		v.t.Errorf("user %d asks %s port %d: %q, want %q", user, host, port, got, want)
	}
}

// install installs settings on the machine.
func (v *vm) install(c Choice, args ...string) (notes []string, err error) {
	v.t.Helper()
	s := settings(v.t, args...)
	v.at.Do(func() { notes, err = Install(v.t.Context(), s, c) })
	return notes, err
}

func (v *vm) mustInstall(c Choice, args ...string) []string {
	v.t.Helper()
	notes, err := v.install(c, args...)
	if err != nil {
		v.t.Fatal(err)
	}
	return notes
}

func (v *vm) remove() []string {
	v.t.Helper()
	var removed []string
	var err error
	v.at.Do(func() { removed, err = Remove(v.t.Context()) })
	if err != nil {
		v.t.Fatal(err)
	}
	return removed
}

// command runs a command on the machine.
func (v *vm) command(line string) string {
	v.t.Helper()
	var out []byte
	var err error
	v.at.Do(func() { out, err = exec.Command("sh", "-ec", "PATH=$PATH:/usr/sbin:/sbin; "+line).CombinedOutput() })
	if err != nil {
		v.t.Fatalf("%s: %v: %s", line, err, out)
	}
	return string(out)
}

// standing are lines about tables and chains of iptables, which stay without rules.
var standing = regexp.MustCompile(`(?m)^(-P .*|table ip6? .*|\s*}|\s*chain [A-Z]+ \{|\s*type .* hook .*|# Warning.*|\s*)\n`)

// state is everything that an installation may change, as text.
func (v *vm) state() string {
	v.t.Helper()
	return standing.ReplaceAllString(v.command(`nft list ruleset | sed 's/counter packets [0-9]* bytes [0-9]*//'; ip rule; ip -6 rule
		ip route show table all | grep -v 'dev eth0\|broadcast' || true
		ip -6 route show table all | grep -v 'dev eth0' || true; ip address show dev lo
		for f in $(cat /proc/self/net/ip_tables_names); do iptables-legacy -t $f -S; done
		for f in $(cat /proc/self/net/ip6_tables_names); do ip6tables-legacy -t $f -S; done`), "")
}

// TestCapture installs rules by each program, in each mode, and sends packets of both
// families.
func TestCapture(t *testing.T) {
	for mode, tproxy := range map[string]bool{"REDIRECT": false, "TPROXY": true} {
		for name, choice := range byProgram {
			t.Run(mode+"/"+name, func(t *testing.T) {
				if name != "nft" {
					outside.Slow(t)
				}
				v := newVM(t, tproxy)
				before := v.state()
				v.untouched()
				v.mustInstall(choice, "-m", mode)
				v.captured()
				once := v.state()
				v.mustInstall(choice, "-m", mode)
				if twice := v.state(); twice != once {
					t.Errorf("a second installation changes something:\n%s\nbefore:\n%s", twice, once)
				}
				v.captured()
				if removed := v.remove(); len(removed) == 0 {
					t.Error("nothing was removed")
				}
				v.untouched()
				if after := v.state(); after != before {
					t.Errorf("this stays:\n%s\nbefore:\n%s", after, before)
				}
				if removed := v.remove(); len(removed) != 0 {
					t.Errorf("removed again: %q", removed)
				}
			})
		}
	}
}

func (v *vm) captured() {
	v.t.Helper()
	for _, address := range [][2]string{{v.at.IPv4, v.other.IPv4}, {v.at.IPv6, v.other.IPv6}} {
		own, other := address[0], address[1]
		source, self := "127.0.0.6", "127.0.0.6"
		if strings.Contains(own, ":") {
			source, self = "::6", "::6"
		}
		if v.tproxy {
			source = other
		}
		v.want(v.other, appUser, own, 8080, fmt.Sprintf("inbound to %s: workload sees %s", net.JoinHostPort(own, "8080"), source))
		v.want(v.at, appUser, other, 9090, "outbound to "+net.JoinHostPort(other, "9090"))
		v.want(v.at, proxyUser, other, 9090, "other machine")
		v.want(v.at, appUser, own, 8080, "workload sees "+own)
		v.want(v.at, proxyUser, own, 8080, fmt.Sprintf("inbound to %s: workload sees %s", net.JoinHostPort(own, "8080"), self))
		v.want(v.other, appUser, own, 22, "ssh here")
		v.want(v.at, appUser, other, 22, "ssh there")
	}
	v.want(v.at, appUser, "127.0.0.1", 8080, "workload sees 127.0.0.1")
	v.want(v.at, appUser, "::1", 8080, "workload sees ::1")
}

func (v *vm) untouched() {
	v.t.Helper()
	for _, address := range [][2]string{{v.at.IPv4, v.other.IPv4}, {v.at.IPv6, v.other.IPv6}} {
		own, other := address[0], address[1]
		v.want(v.other, appUser, own, 8080, "workload sees "+other)
		v.want(v.at, appUser, other, 9090, "other machine")
	}
}

// TestOtherProgram changes the program by which rules are installed. Only those of the last
// one stay.
func TestOtherProgram(t *testing.T) {
	outside.Slow(t)
	v := newVM(t, false)
	for _, name := range []string{"iptables-legacy", "nft", "iptables-nft", "nft", "iptables-legacy", "iptables-nft"} {
		v.mustInstall(byProgram[name], "-b", "8080")
		var found *Found
		var err error
		v.at.Do(func() { found, err = Find(t.Context()) })
		if err != nil {
			t.Fatal(err)
		}
		fingerprints := slices.Compact(found.Fingerprints)
		if len(found.By) != 1 || len(fingerprints) != 1 || fingerprints[0] != settings(t, "-b", "8080").Fingerprint() {
			t.Errorf("after %s there are rules by %q: %q", name, found.By, found.Fingerprints)
		}
		v.captured()
	}
}

// TestOtherFlags changes the flags. What only the flags before needed is removed.
func TestOtherFlags(t *testing.T) {
	outside.Slow(t)
	for name, choice := range byProgram {
		t.Run(name, func(t *testing.T) {
			v := newVM(t, false)
			v.mustInstall(choice, "-b", "8080", "--redirect-dns", "--capture-all-dns", "--drop-invalid")
			want := v.state()
			v.mustInstall(choice, "-m", "TPROXY", "-t", "7", "-r", "77")
			v.mustInstall(choice, "-m", "TPROXY", "-t", "8", "-r", "78")
			v.mustInstall(choice, "-b", "8080", "--redirect-dns", "--capture-all-dns", "--drop-invalid")
			if got := v.state(); sorted(got) != sorted(want) {
				t.Errorf("state is\n%s\nwant\n%s", got, want)
			}
			v.captured()
		})
	}
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestFailedInstallation makes the last step fail. Everything is as it was before.
func TestFailedInstallation(t *testing.T) {
	outside.Slow(t)
	for name, broken := range map[string]string{
		// nft and iptables-restore fail for a while, after the routing has changed.
		"nft":             "nft",
		"iptables-nft":    "ip6tables-nft-restore",
		"iptables-legacy": "ip6tables-legacy-restore",
	} {
		t.Run(name, func(t *testing.T) {
			v := newVM(t, false)
			for _, first := range []bool{true, false} {
				before := v.state()
				real := program(broken)
				failing := fakeProgram(t, broken, fmt.Sprintf(`case "$*" in
					-f*|*--noflush*) case "$*" in *--test*) ;; *) [ -e "$0.failed" ] || { touch "$0.failed"; echo broken on purpose >&2; exit 1; } ;; esac ;;
				esac
				exec %s "$@"`, real))
				if notes, err := v.install(byProgram[name], "-m", "TPROXY", "-r", "99"); err == nil || !strings.Contains(err.Error(), "broken on purpose") {
					t.Fatalf("installed: %q, %v", notes, err)
				}
				failing()
				if after := v.state(); sorted(after) != sorted(before) {
					t.Errorf("state is\n%s\nbefore:\n%s", after, before)
				}
				if first {
					v.untouched()
					v.mustInstall(byProgram[name], "-b", "8080")
				}
			}
			v.captured()
		})
	}
}

// fakeProgram puts a script in the place of a program, until the returned function is called.
func fakeProgram(t *testing.T, name, script string) (remove func()) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := os.Getenv("PATH")
	t.Setenv("PATH", dir+":"+before)
	return func() { t.Setenv("PATH", before) }
}

// TestOtherTools finds rules of other tools. If they redirect connections, nothing is
// installed, and they stay as they are.
func TestOtherTools(t *testing.T) {
	outside.Slow(t)
	v := newVM(t, false)
	for _, tc := range []struct{ setUp, says, cleanUp string }{
		{"nft add table inet istio-proxy-nat", "Istio: table istio-proxy-nat of nft (to remove: nft delete table inet istio-proxy-nat)", "nft delete table inet istio-proxy-nat"},
		{"iptables-nft -t nat -N ISTIO_OUTPUT; iptables-nft -t nat -A OUTPUT -p tcp -j ISTIO_OUTPUT", "Istio: chains ISTIO_OUTPUT of iptables (to remove: istio-iptables --cleanup-only)", "iptables-nft -t nat -F; iptables-nft -t nat -X"},
		{"ip6tables-legacy -t nat -N KUMA_MESH_OUTBOUND; ip6tables-legacy -t nat -A OUTPUT -j KUMA_MESH_OUTBOUND", "Kuma: chains KUMA_MESH_OUTBOUND of iptables", "ip6tables-legacy -t nat -F; ip6tables-legacy -t nat -X"},
	} {
		v.command(tc.setUp)
		before := v.state()
		for name, choice := range byProgram {
			if _, err := v.install(choice); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s, %s: %v, want %s", name, tc.setUp, err, tc.says)
			}
		}
		v.remove()
		if after := v.state(); after != before {
			t.Errorf("state is\n%s\nbefore:\n%s", after, before)
		}
		v.command(tc.cleanUp)
	}
	v.command("iptables-nft -t nat -N ISTIO_OUTPUT; iptables-nft -t nat -A ISTIO_OUTPUT -p tcp -j REDIRECT --to-ports 1")
	if notes := v.mustInstall(Choice{}); !slices.Contains(notes, "Istio left chains ISTIO_OUTPUT of iptables, which nothing calls; they stay") {
		t.Errorf("notes are %q", notes)
	}
	v.captured()
	v.remove()
	if !strings.Contains(v.state(), "ISTIO_OUTPUT") {
		t.Error("a chain of another tool was removed")
	}
}

// docker are rules as Docker makes them for a port that a container publishes.
const docker = `iptables-nft -t nat -N DOCKER
iptables-nft -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
iptables-nft -t nat -A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
iptables-nft -t nat -A DOCKER -p tcp --dport 8081 -j DNAT --to-destination 10.78.0.2:8082`

// TestDocker checks that ports of containers work, that rules of Docker stay, and that
// connections of containers to elsewhere are left alone.
func TestDocker(t *testing.T) {
	outside.Slow(t)
	for name, choice := range byProgram {
		t.Run(name, func(t *testing.T) {
			if name == "iptables-legacy" {
				t.Skip("Docker and the rules of capture are in the same variant of iptables")
			}
			v := newVM(t, false)
			v.command(docker)
			v.mustInstall(choice)
			v.want(v.other, appUser, v.at.IPv4, 8081, "container")
			v.captured()
			v.remove()
			v.want(v.other, appUser, v.at.IPv4, 8081, "container")
			if got := v.command("iptables-nft -t nat -S"); !strings.Contains(got, "-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER") {
				t.Errorf("rules are\n%s", got)
			}
		})
	}
}

// TestForwarded checks that connections which the machine only forwards, such as those of its
// containers, are left alone in both modes.
func TestForwarded(t *testing.T) {
	for _, mode := range []string{"REDIRECT", "TPROXY"} {
		v := newVM(t, mode == "TPROXY")
		// What the machine would forward is answered with an error at once.
		v.command("echo 1 > /proc/sys/net/ipv4/ip_forward; ip route add prohibit 10.99.0.0/24")
		v.mustInstall(Choice{}, "-m", mode)
		if got := v.ask(v.other, appUser, "10.99.0.1", 8080); !strings.Contains(got, "connect: ") {
			t.Errorf("%s: a forwarded connection is captured: %s", mode, got)
		}
	}
}

// TestRights checks the message for a process that may not change the packet filter.
func TestRights(t *testing.T) {
	m := netspace.Alone(t)
	m.Do(func() {
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, appUser, appUser, appUser); e != 0 {
			panic(e)
		}
		for what, call := range map[string]func() error{
			"install": func() error { _, err := Install(t.Context(), settings(t), Choice{}); return err },
			"remove":  func() error { _, err := Remove(t.Context()); return err },
			"find":    func() error { _, err := Find(t.Context()); return err },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), "the capability CAP_NET_ADMIN is missing: run as root, or give it") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestNoPrograms checks the messages on a machine that lacks programs.
func TestNoPrograms(t *testing.T) {
	m := netspace.Alone(t)
	t.Setenv("PATH", t.TempDir())
	defer func(before []string) { folders = before }(folders)
	folders = nil
	yes := true
	for want, choice := range map[string]Choice{
		"neither nft nor iptables-restore is on PATH: install the package nftables": {},
		"nft is not on PATH: install the package nftables, or leave out":            {NFT: &yes},
		"iptables-legacy-save and iptables-legacy-restore are not on PATH":          {Variant: "legacy", NFT: new(bool)},
	} {
		m.Do(func() {
			if _, err := Install(t.Context(), settings(t), choice); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", choice, err, want)
			}
		})
	}
	m.Do(func() {
		if _, err := Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "rules cannot be seen") {
			t.Errorf("remove: %v", err)
		}
	})
}

// TestOneAtATime checks that a second process fails while one changes rules.
func TestOneAtATime(t *testing.T) {
	v := newVM(t, false)
	v.at.Do(func() {
		release, err := lock()
		if err != nil {
			panic(err)
		}
		defer release()
		if _, err := Install(t.Context(), settings(t), Choice{}); err == nil || !strings.Contains(err.Error(), "another pilot-agent is changing the rules") {
			t.Errorf("installed meanwhile: %v", err)
		}
	})
	v.mustInstall(Choice{})
}

// TestTakenRouteTable checks that a routing table of others stays as it is.
func TestTakenRouteTable(t *testing.T) {
	v := newVM(t, false)
	v.command("ip route add 192.0.2.0/24 dev eth0 table 133")
	before := v.state()
	if _, err := v.install(Choice{}, "-m", "TPROXY"); err == nil || !strings.Contains(err.Error(), "routing table 133 has other routes") {
		t.Errorf("installed: %v", err)
	}
	if after := v.state(); after != before {
		t.Errorf("state is\n%s\nbefore:\n%s", after, before)
	}
}

// TestDNS checks that questions of programs arrive at the agent's resolver, and those of the
// resolver at the server.
func TestDNS(t *testing.T) {
	outside.Slow(t)
	for name, choice := range byProgram {
		t.Run(name, func(t *testing.T) {
			v := newVM(t, false)
			v.at.Do(func() { v.answerPackets(true, 15053, "agent") })
			v.other.Do(func() { v.answerPackets(false, 53, "server") })
			v.mustInstall(choice, "--redirect-dns", "--capture-all-dns")
			for _, server := range []string{v.other.IPv4, v.other.IPv6} {
				for user, want := range map[uint32]string{appUser: "agent", proxyUser: "server"} {
					if got := v.question(user, server); got != want {
						t.Errorf("user %d asks %s: %s, want %s", user, server, got, want)
					}
				}
			}
		})
	}
}

// answerPackets answers each packet at a port with a text. It sends as the proxy's user. The
// resolver must listen at loopback addresses: the kernel takes only answers from there for
// answers to a redirected question.
func (v *vm) answerPackets(loopback bool, port int, text string) {
	for network, host := range map[string]string{"udp4": "127.0.0.1", "udp6": "::1"} {
		if !loopback {
			host = ""
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSGID, proxyUser, 0, 0)
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, proxyUser, 0, 0)
		l, err := net.ListenPacket(network, net.JoinHostPort(host, fmt.Sprint(port)))
		if err != nil {
			panic(err)
		}
		v.t.Cleanup(func() { _ = l.Close() })
		go func() {
			buffer := make([]byte, 512)
			for {
				_, from, err := l.ReadFrom(buffer)
				if err != nil {
					return
				}
				_, _ = l.WriteTo([]byte(text), from)
			}
		}()
	}
}

// question sends a packet to port 53 of a server and returns the answer.
func (v *vm) question(user uint32, server string) (answer string) {
	v.t.Helper()
	v.at.As(user, user, func() {
		conn, err := net.Dial("udp", net.JoinHostPort(server, "53"))
		if err != nil {
			answer = err.Error()
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		buffer := make([]byte, 512)
		if _, err := conn.Write([]byte("?")); err != nil {
			answer = err.Error()
			return
		}
		n, err := conn.Read(buffer)
		if answer = string(buffer[:n]); err != nil {
			answer = err.Error()
		}
	})
	return answer
}
