//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/netspace"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// agentOn runs the agent on a machine and returns its output, errors last, and exit code.
func agentOn(t *testing.T, m *netspace.Machine, args ...string) (out string, code int) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), asAgent+"=1")
	m.Do(func() {
		var text []byte
		if text, err = cmd.CombinedOutput(); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				panic(err)
			}
		}
		out, code = string(text), cmd.ProcessState.ExitCode()
	})
	return out, code
}

// shell runs a command on a machine.
func shell(t *testing.T, m *netspace.Machine, line string) {
	t.Helper()
	m.Do(func() {
		if out, err := exec.Command("sh", "-ec", "PATH=$PATH:/usr/sbin:/sbin; "+line).CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%s: %v: %s", line, err, out))
		}
	})
}

func newMachine(t *testing.T) *netspace.Machine {
	t.Helper()
	outside.Tool(t, "nft")
	_, m := netspace.Pair(t)
	return m
}

// listen accepts connections on a machine until the test ends.
func listen(t *testing.T, m *netspace.Machine, ports ...int) {
	t.Helper()
	m.Do(func() {
		for _, port := range ports {
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
			if err != nil {
				panic(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_ = conn.Close()
				}
			}()
		}
	})
}

// TestCheck installs rules and breaks them. check says what is wrong and what to do.
func TestCheck(t *testing.T) {
	outside.Slow(t)
	m := newMachine(t)
	want(t, m, 1, []string{
		"FAIL  rules: none are installed; run pilot-agent capture install",
		"FAIL  outbound, IPv4: a connection to 192.0.2.1:9 was not captured",
	}, "--probe-timeout", "100ms")
	install(t, m)
	healthy := []string{
		"ok    rules: installed by nftables, with these flags",
		"ok    outbound, IPv4: a connection to 192.0.2.1:9 was captured",
		"ok    the proxy's own, IPv4: a connection of the proxy's user to 192.0.2.1:9 was left alone",
		"ok    inbound, IPv4: a call of the proxy to 10.78.0.2:9 was captured; calls from other machines are not tried",
		"ok    outbound, IPv6: a connection to [2001:db8::1]:9 was captured",
		"ok    the proxy's own, IPv6: a connection of the proxy's user to [2001:db8::1]:9 was left alone",
		"ok    inbound, IPv6: a call of the proxy to [fd78::2]:9 was captured; calls from other machines are not tried",
	}
	var withoutProxy []string
	for _, line := range healthy {
		if !strings.Contains(line, "  inbound") {
			withoutProxy = append(withoutProxy, line)
		}
	}
	want(t, m, 1, append([]string{
		"skip  inbound, IPv4: it cannot be tried without the proxy",
		"FAIL  port 15001, IPv4: nothing listens (it was refused), so captured connections fail; start the proxy",
		"FAIL  port 15006, IPv6: nothing listens (it was refused), so captured connections fail; start the proxy",
	}, withoutProxy...))
	listen(t, m, 15001, 15006)
	want(t, m, 0, append([]string{"ok    port 15001, IPv4: a program listens", "ok    port 15006, IPv6: a program listens"}, healthy...))
	want(t, m, 1, []string{"FAIL  rules: those that are installed by nftables are of other flags; give check the flags of install, or run install with these"}, "-d", "9")

	shell(t, m, `nft 'insert rule inet pilot-agent nat-output oifname "eth0" meta l4proto tcp meta skuid 1337 redirect to :15001'`)
	want(t, m, 1, []string{"FAIL  the proxy's own, IPv4: a connection of the proxy's user to 192.0.2.1:9 was captured; give install the user and group of the proxy (--proxy-uid, --proxy-gid)"})
	install(t, m)
	shell(t, m, "nft flush chain inet pilot-agent nat-inbound; nft flush chain inet pilot-agent nat-outbound")
	want(t, m, 1, []string{
		"FAIL  outbound, IPv6: a connection to [2001:db8::1]:9 was not captured",
		"FAIL  inbound, IPv4: a call of the proxy to 10.78.0.2:9 was not captured",
	}, "--probe-timeout", "100ms")
	install(t, m, "-m", "TPROXY")
	shell(t, m, "nft add table inet istio-proxy-nat; ip rule del fwmark 1337; ip route flush table 133; ip -6 rule del fwmark 1337; ip -6 route flush table 133")
	want(t, m, 1, []string{
		"FAIL  routing: the routing rule for the mark 1337 is missing; run pilot-agent capture install",
		"FAIL  rules: Istio redirects connections too (table istio-proxy-nat of nft); remove its rules",
	}, "-m", "TPROXY")
	shell(t, m, "nft delete table inet istio-proxy-nat")
	if out, code := agentOn(t, m, "capture", "install", "--native-nftables=false"); code != 0 || !strings.Contains(out, "removed: rules of an earlier installation by nftables\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	want(t, m, 0, append([]string{"ok    rules: installed by iptables, with these flags"}, healthy[1:]...))
	if out, code := agentOn(t, m, "capture", "remove"); code != 0 || !strings.Contains(out, "removed: rules by iptables\n") || !strings.Contains(out, "removed: address ::6 of the loopback interface\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := agentOn(t, m, "capture", "remove"); code != 0 || out != "nothing was installed\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestCheckDNS checks the trial of DNS.
func TestCheckDNS(t *testing.T) {
	m := newMachine(t)
	flags := []string{"--redirect-dns", "--capture-all-dns", "-b", "", "-i", ""}
	install(t, m, flags...)
	want(t, m, 1, []string{
		"FAIL  port 15053, IPv4: nothing listens, so questions of DNS have no answer; start the agent",
		"ok    DNS, IPv4: a question to 192.0.2.1:53 was captured",
		"ok    DNS, IPv6: a question to [2001:db8::1]:53 was captured",
	}, flags...)
}

func install(t *testing.T, m *netspace.Machine, flags ...string) {
	t.Helper()
	if out, code := agentOn(t, m, append([]string{"capture", "install"}, flags...)...); code != 0 || !strings.Contains(out, "installed by nftables\n") {
		t.Fatalf("exit code %d: %s", code, out)
	}
}

// want runs check, and looks for lines that begin with these.
func want(t *testing.T, m *netspace.Machine, code int, lines []string, flags ...string) {
	t.Helper()
	out, got := agentOn(t, m, append([]string{"capture", "check"}, flags...)...)
	if got != code {
		t.Errorf("%q: exit code %d, want %d:\n%s", flags, got, code, out)
	}
	for _, line := range lines {
		if !strings.Contains("\n"+out, "\n"+line) {
			t.Errorf("%q:\n%s\nlacks: %s", flags, out, line)
		}
	}
}
