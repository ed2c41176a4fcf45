package capture

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/agent/capture/simulator"
)

// TestPromises draws flags and packets. Whatever the flags are, the texts for nft and
// iptables mean the same, and what is promised never to be captured is not.
func TestPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var args []string
		flag := func(name string, values ...string) {
			if value := rapid.SampledFrom(append(values, "-")).Draw(t, name); value != "-" {
				args = append(args, "--"+name+"="+value)
			}
		}
		flag("istio-inbound-interception-mode", "TPROXY", "REDIRECT", "tproxy")
		flag("istio-inbound-ports", "", "*", "4000,5000", "80")
		flag("istio-local-exclude-ports", "5000", "22,4000")
		flag("istio-outbound-ports", "31000", "80,53")
		flag("istio-local-outbound-ports-exclude", "80", "53")
		flag("istio-service-cidr", "", "*", "9.9.0.0/16,2001:db8::/32", "127.1.2.3/32", "0.0.0.0/0,::/0")
		flag("istio-service-exclude-cidr", "1.1.0.0/16", "9.9.9.0/24,2600::1", "::/0")
		flag("istio-outbound-ipv4-loopback-cidr", "127.0.0.0/8", "127.0.0.1/16")
		flag("istio-outbound-owner-groups", "java,202", "888")
		flag("istio-exclude-interfaces", "not-istio-nic", "eth0,lo")
		flag("kube-virt-interfaces", "eth1", "eth1,eth2")
		flag("proxy-uid", "3,4", "1337", "0")
		flag("proxy-gid", "1,2")
		flag("server", "9.9.9.9:80", "10.0.0.5:4000,[2600::1]:443")
		flag("dual-stack", "false")
		flag("redirect-dns", "true")
		flag("drop-invalid", "true")
		s := parse(t, testMachine(), args...)
		rules := readBoth(t, s, s.Ruleset())
		for range 300 {
			p := drawPacket(t, s)
			fate := fate(t, rules["nft"], p)
			if family := familyName(familyOf(p.To)); rules[family] != nil {
				if other, err := rules[family].Fate(p); err != nil || other != fate {
					t.Fatalf("%q: %s: nft %s, iptables %s: %v", args, p, fate.Text(p), other.Text(p), err)
				}
			} else if fate.Redirected+fate.TProxied != 0 {
				t.Fatalf("%q: %s is captured without --dual-stack", args, p)
			}
			if broken := promise(s, p, fate); broken != "" {
				t.Fatalf("%q: %s: %s: %s", args, p, fate.Text(p), broken)
			}
		}
	})
}

func drawPacket(t *rapid.T, s *Settings) simulator.Packet {
	to := rapid.SampledFrom(targets).Draw(t, "to")
	sender := rapid.SampledFrom(senders).Draw(t, "sender")
	p := simulator.Packet{
		Output: rapid.Bool().Draw(t, "output"), Protocol: rapid.SampledFrom([]string{"tcp", "udp"}).Draw(t, "protocol"),
		To: netip.MustParseAddr(to.to), ToThisMachine: to.own, ToPort: rapid.SampledFrom(append(portsOfPackets, 443)).Draw(t, "port"),
		Interface: rapid.SampledFrom(append([]string{"eth2"}, to.interfaces...)).Draw(t, "interface"),
		FromPort:  rapid.SampledFrom([]int{40000, 53, 15053}).Draw(t, "from port"),
		Invalid:   rapid.Float64().Draw(t, "invalid") < 0.05,
	}
	p.From = rapid.SampledFrom(sources(p.To)).Draw(t, "from")
	if p.Output {
		p.User, p.Group = sender[0], sender[1]
		if to.own {
			p.Interface = "lo"
		}
	}
	if p.Established = rapid.Bool().Draw(t, "established") && !p.Invalid; p.Established {
		p.ConnMark = rapid.SampledFrom([]uint32{0, s.Mark}).Draw(t, "mark")
	}
	return p
}

// promise returns the promise that a fate breaks, or "".
func promise(s *Settings, p simulator.Packet, f simulator.Fate) string {
	captured := f.Redirected != 0 || f.TProxied != 0
	c := &compared{settings: s, packet: p}
	switch {
	case f.Dropped && (!s.DropInvalid || !p.Invalid):
		return "no packet is dropped"
	case !captured:
		return ""
	case c.tcpTo(sshPort):
		return "port 22 is never captured"
	case p.Protocol == "udp" && (p.ToPort != dnsPort || f.Redirected != ResolverPort || !s.DNS.captured()):
		return "of UDP only questions of DNS are captured"
	case p.Protocol == "tcp" && !p.Output && !p.ToThisMachine && !c.ofVirtualMachine():
		return "what the machine forwards is never captured"
	case p.Output && c.ofProxy() && (p.Interface != "lo" || f.Redirected != s.InboundPort || !c.inboundCaptured()):
		return "what the proxy sends is captured only as an inbound call to its own machine"
	case p.Output && p.Interface == "lo" && !c.ofProxy() && f.Redirected != ResolverPort && !inLoopbackRanges(s, p.To):
		return "programs of the machine call each other directly"
	}
	for _, server := range s.Servers {
		if p.Protocol == "tcp" && server == netip.AddrPortFrom(p.To, uint16(p.ToPort)) {
			return "servers of the control plane are never captured"
		}
	}
	for _, name := range s.InterfacesExcluded {
		if p.Interface == name {
			return "excluded interfaces are not captured"
		}
	}
	return ""
}

func inLoopbackRanges(s *Settings, to netip.Addr) bool {
	for _, block := range s.Ranges.List {
		if block.Addr().IsLoopback() && block.Contains(to) {
			return true
		}
	}
	return false
}

// TestMistakes checks that each mistake in flags is reported with its flag, all at once.
func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"-p 0 -z http", []string{`--envoy-port: "0" is no port: a number from 1 to 65535 is needed`, `--inbound-capture-port: "http" is no port`}},
		{"-m BOTH", []string{`--istio-inbound-interception-mode: "BOTH" is no mode; REDIRECT and TPROXY are`}},
		{"-b 80,22", []string{"--istio-inbound-ports: port 22 is never captured"}},
		{"-b 80,*", []string{"--istio-inbound-ports: * stands for all ports, and must be alone"}},
		{"-b 15001", []string{"--istio-inbound-ports: 15001 is the port at which the proxy accepts captured connections"}},
		{"-q 22", []string{"--istio-outbound-ports: port 22 is never captured"}},
		{"-i 10.0.0.0/33 -x *", []string{`--istio-service-cidr: "10.0.0.0/33" is no block of addresses`, "--istio-service-exclude-cidr: * stands for all addresses"}},
		{"-u nobody-of-that-name", []string{`--proxy-uid: this machine has no user "nobody-of-that-name"; a number works too`}},
		{"-u ,", []string{"--proxy-uid: is empty"}},
		{"-c eth0\"", []string{`--istio-exclude-interfaces: "eth0\"" is no name of a network interface`}},
		{"-k a-name-that-is-too-long", []string{"--kube-virt-interfaces"}},
		{"-t 0 -r x", []string{`--istio-inbound-tproxy-mark: "0" is no number from 1 to 4294967295`, "--istio-inbound-tproxy-route-table"}},
		{"--capture-all-dns", []string{"--capture-all-dns: has an effect only with --redirect-dns"}},
		{"--server mesh.example", []string{`--server: "mesh.example" has not the form HOST:PORT`}},
		{"--server mesh.example:0", []string{`--server: "mesh.example:0" has no port`}},
		{"--istio-outbound-owner-groups 5 --istio-outbound-owner-groups-exclude 6", []string{"cannot be given together with --istio-outbound-owner-groups"}},
		{"--istio-outbound-ipv4-loopback-cidr 10.0.0.0/8", []string{"is not within 127.0.0.0/8"}},
		{"-b " + strings.Repeat("1,", 10) + manyPorts(), []string{"--istio-inbound-ports: has 1001 entries; at most 1000 are allowed"}},
	} {
		f, err := flagsOf(strings.Fields(tc.args)...)
		if err != nil {
			t.Fatalf("%s: %v", tc.args, err)
		}
		s, err := f.Parse(testMachine())
		if s != nil || err == nil {
			t.Errorf("%s is accepted", tc.args)
			continue
		}
		if lines := strings.Split(err.Error(), "\n"); len(lines) != len(tc.want) {
			t.Errorf("%s: %d mistakes, want %d:\n%v", tc.args, len(lines), len(tc.want), err)
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\ndoes not say: %s", tc.args, err, want)
			}
		}
	}
	on := testMachine()
	on.Resolvers = func() ([]netip.Addr, error) { return nil, nil }
	f, _ := flagsOf("--redirect-dns")
	if _, err := f.Parse(on); err == nil || !strings.Contains(err.Error(), "--redirect-dns: /etc/resolv.conf names no server") {
		t.Errorf("no server of DNS: %v", err)
	}
}

func manyPorts() string {
	ports := make([]string, MostEntries+1)
	for i := range ports {
		ports[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(ports, ",")
}

// TestPilotsFirstFlags checks that a command line of Pilot's first agent means the same here.
func TestPilotsFirstFlags(t *testing.T) {
	s := parse(t, testMachine(), strings.Fields("-p 15001 -u 1337 -m REDIRECT -i 10.0.0.0/8,172.16.0.1 -x 10.9.0.0/16 -b 80,8080 -d 9090")...)
	if s.OutboundPort != 15001 || fmt.Sprint(s.Proxies) != "[{false 1337} {true 1337}]" || s.Mode != Redirect ||
		fmt.Sprint(s.Ranges.List, s.RangesExcluded) != "[10.0.0.0/8 172.16.0.1/32] [10.9.0.0/16]" ||
		fmt.Sprint(s.Inbound.List, s.InboundExcluded) != "[80 8080] [9090]" {
		t.Errorf("settings are %+v", s)
	}
}

func TestResolvers(t *testing.T) {
	got := resolvers("# a comment\nsearch example\nnameserver 192.0.2.1\nnameserver\t2001:db8::1\nnameserver fe80::1%eth0 # x\nnameserver what\noptions ndots:5\n")
	if fmt.Sprint(got) != "[192.0.2.1 2001:db8::1 fe80::1]" {
		t.Errorf("servers are %v", got)
	}
}
