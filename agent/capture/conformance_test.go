package capture

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
	"github.com/pilot-api/pilot-api/agent/capture/simulator"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// recorded are the settings of a recorded case of Istio.
type recorded struct {
	Name     string
	Settings struct {
		InboundPortsInclude, InboundPortsExclude, InboundInterceptionMode,
		OutboundPortsInclude, OutboundPortsExclude, OutboundIPRangesInclude, OutboundIPRangesExclude,
		ProxyUID, ProxyGID, OwnerGroupsInclude, OwnerGroupsExclude,
		RerouteVirtualInterfaces, ExcludeInterfaces, HostIPv4LoopbackCidr string
		DNSServersV4, DNSServersV6      []string
		RedirectDNS, EnableIPv6, DryRun bool
	}
}

// settings are ours for the same flags.
func (r recorded) settings(t *testing.T) *Settings {
	t.Helper()
	s := r.Settings
	args := []string{"--istio-inbound-ports", s.InboundPortsInclude, "--istio-service-cidr", s.OutboundIPRangesInclude}
	for name, value := range map[string]string{
		"istio-local-exclude-ports": s.InboundPortsExclude, "istio-inbound-interception-mode": s.InboundInterceptionMode,
		"istio-outbound-ports": s.OutboundPortsInclude, "istio-local-outbound-ports-exclude": s.OutboundPortsExclude,
		"istio-service-exclude-cidr": s.OutboundIPRangesExclude, "proxy-uid": s.ProxyUID, "proxy-gid": s.ProxyGID,
		"istio-outbound-owner-groups": s.OwnerGroupsInclude, "istio-outbound-owner-groups-exclude": s.OwnerGroupsExclude,
		"kube-virt-interfaces": s.RerouteVirtualInterfaces, "istio-exclude-interfaces": s.ExcludeInterfaces,
		"istio-outbound-ipv4-loopback-cidr": s.HostIPv4LoopbackCidr,
	} {
		if value != "" {
			args = append(args, "--"+name, value)
		}
	}
	servers := slices.Concat(s.DNSServersV4, s.DNSServersV6)
	if !s.EnableIPv6 {
		args = append(args, "--dual-stack=false")
	}
	// Istio redirects no question if it finds no server, and says so in its log. Here that
	// is an error.
	if s.RedirectDNS && len(servers) > 0 {
		args = append(args, "--redirect-dns")
	}
	on := testMachine()
	on.Resolvers = func() (out []netip.Addr, err error) {
		for _, server := range servers {
			out = append(out, netip.MustParseAddr(server))
		}
		return out, nil
	}
	return parse(t, on, args...)
}

func testMachine() Machine {
	return Machine{
		User:      lookupUser,
		Group:     func(name string) (uint32, error) { return simulator.Groups[name], nil },
		Resolvers: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("192.0.2.53")}, nil },
		Addresses: func(host string) ([]netip.Addr, error) {
			address, err := netip.ParseAddr(host)
			return []netip.Addr{address}, err
		},
	}
}

// tester is a test, also one of rapid.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func flagsOf(args ...string) (*Flags, error) {
	var f Flags
	set := pflag.NewFlagSet("capture", pflag.ContinueOnError)
	f.Register(set)
	return &f, set.Parse(args)
}

func parse(t tester, on Machine, args ...string) *Settings {
	t.Helper()
	f, err := flagsOf(args...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Parse(on)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return s
}

// selfMark is what Istio marks calls of the machine to itself with, if it has TPROXY. marksCalls
// is the difference that we do not.
const selfMark = 1338

var marksCalls = &difference{name: "marks of calls to itself", holds: func(*compared) bool { return false }}

// difference is one between Istio's rules and ours that has a reason, which stands in
// docs/decisions/045-capture.md under its name.
type difference struct {
	name  string
	holds func(c *compared) bool
	met   bool
}

// compared is a packet with its two fates.
type compared struct {
	settings    *Settings
	packet      simulator.Packet
	istio, ours simulator.Fate
}

func (c *compared) ofProxy() bool {
	return slices.ContainsFunc(c.settings.Proxies, func(o netfilter.Owner) bool {
		return o.ID == c.packet.User && !o.Group || o.ID == c.packet.Group && o.Group
	})
}

func (c *compared) ofVirtualMachine() bool {
	return !c.packet.Output && slices.Contains(c.settings.VirtualInterfaces, c.packet.Interface)
}

func (c *compared) tcpTo(ports ...int) bool {
	return c.packet.Protocol == "tcp" && slices.Contains(ports, c.packet.ToPort)
}

// inboundCaptured reports whether a call from another machine to the port would be captured.
func (c *compared) inboundCaptured() bool {
	s := c.settings
	return !slices.Contains(append(s.inboundExcluded(), sshPort), c.packet.ToPort) &&
		(s.Inbound.All || slices.Contains(s.Inbound.List, c.packet.ToPort))
}

func differences() []*difference {
	return []*difference{
		{name: "port 22", holds: func(c *compared) bool { return c.tcpTo(sshPort) && c.ours.Redirected+c.ours.TProxied == 0 }},
		{name: "ports of the agent", holds: func(c *compared) bool {
			return c.tcpTo(agentPort, healthPort, statsPort) && c.ours.Redirected+c.ours.TProxied == 0 &&
				(c.istio.Redirected == c.settings.InboundPort || c.istio.TProxied != 0)
		}},
		{name: "virtual machines", holds: func(c *compared) bool {
			return c.ofVirtualMachine() && c.ours.Redirected == 0 &&
				slices.ContainsFunc(c.settings.RangesExcluded, func(b netip.Prefix) bool { return b.Contains(c.packet.To) })
		}},
		{name: "forwarded packets", holds: func(c *compared) bool {
			return !c.packet.Output && !c.packet.ToThisMachine && !c.ofVirtualMachine() &&
				c.istio.Redirected+c.istio.TProxied == c.settings.InboundPort && c.ours == simulator.Fate{Mark: c.packet.Mark, ConnMark: c.packet.ConnMark}
		}},
		{name: "the machine calls itself through its proxy", holds: func(c *compared) bool {
			return c.packet.Output && c.packet.Interface == "lo" && c.ofProxy() &&
				c.istio.Redirected == c.settings.InboundPort && c.ours.Redirected == 0 && !c.inboundCaptured()
		}},
		{name: "several users", holds: func(c *compared) bool {
			return c.packet.Output && c.packet.Interface == "lo" && c.ofProxy() && c.inboundCaptured() &&
				c.istio.Redirected == 0 && c.ours.Redirected == c.settings.InboundPort
		}},
		{name: "the mark of TPROXY", holds: func(c *compared) bool {
			return c.settings.Mode == TProxy && c.packet.Mark == c.settings.Mark && c.istio.Redirected == c.settings.InboundPort && c.ours.Redirected == 0
		}},
		{name: "marks of inbound packets", holds: func(c *compared) bool {
			marked := c.ours
			marked.Mark = c.settings.Mark
			return c.settings.Mode == TProxy && !c.packet.Output && c.packet.Interface != "lo" && c.istio == marked
		}},
	}
}

// TestAgainstIstio compares what becomes of packets under the rules that Istio wrote for a
// set of flags, and under ours for the same flags.
func TestAgainstIstio(t *testing.T) {
	outside.Slow(t)
	files, err := filepath.Glob(outside.Shared(t, "conformance", "istio-1.31", "capture") + "/*.json")
	if err != nil || len(files) < 17 {
		t.Fatalf("%d recorded cases: %v", len(files), err)
	}
	known := append(differences(), marksCalls)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		t.Run(r.Name, func(t *testing.T) { compareWithIstio(t, strings.TrimSuffix(file, ".json"), r, known) })
	}
	page, err := os.ReadFile("../../docs/decisions/045-capture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range known {
		if !d.met {
			t.Errorf("no packet shows the difference %q", d.name)
		}
		if !strings.Contains(string(page), "| "+d.name+" |") {
			t.Errorf("docs/decisions/045-capture.md has no reason for the difference %q", d.name)
		}
	}
}

func compareWithIstio(t *testing.T, base string, r recorded, known []*difference) {
	s := r.settings(t)
	ruleset := s.Ruleset()
	ours := readBoth(t, s, ruleset)
	theirs := map[string]*simulator.Rules{}
	text, err := os.ReadFile(base + ".iptables")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := simulator.ReadIPTables(string(text))
	if want := len(s.Families()); err != nil || len(parts) != want {
		t.Fatalf("%d parts, want %d: %v", len(parts), want, err)
	}
	for i, family := range s.Families() {
		theirs[familyName(family)] = parts[i]
	}
	if text, err = os.ReadFile(base + ".nftables"); err != nil {
		t.Fatal(err)
	}
	nft, err := simulator.ReadNFT(string(text))
	if err != nil {
		t.Fatal(err)
	}
	packets, faults := packetsFor(s), 0
	for _, p := range packets {
		family := familyName(familyOf(p.To))
		c := &compared{settings: s, packet: p, istio: fate(t, theirs[family], p), ours: fate(t, ours[family], p)}
		if other := fate(t, ours["nft"], p); other != c.ours {
			t.Fatalf("%s: nft %s, iptables %s", p, other.Text(p), c.ours.Text(p))
		}
		if other := fate(t, nft, p); other != c.istio {
			t.Fatalf("the recorded rules differ: %s: nft %s, iptables %s", p, other.Text(p), c.istio.Text(p))
		}
		if c.istio.Mark == selfMark {
			marksCalls.met, c.istio.Mark = true, p.Mark
		}
		if c.istio == c.ours {
			continue
		}
		if at := slices.IndexFunc(known, func(d *difference) bool { return d.holds(c) }); at >= 0 {
			known[at].met = true
			continue
		}
		if faults++; faults < 12 {
			t.Errorf("%s: Istio: %s, ours: %s", p, c.istio.Text(p), c.ours.Text(p))
		}
	}
	t.Logf("%d packets, %d without a reason", len(packets), faults)
}

// readBoth reads our rules in all their forms.
func readBoth(t tester, s *Settings, r netfilter.Ruleset) map[string]*simulator.Rules {
	t.Helper()
	out := map[string]*simulator.Rules{}
	nft, err := simulator.ReadNFT(r.NFT())
	if err != nil {
		t.Fatal(err)
	}
	out["nft"] = nft
	for _, family := range s.Families() {
		parts, err := simulator.ReadIPTables(r.IPTables(family, nil))
		if err != nil || len(parts) != 1 {
			t.Fatalf("%d parts: %v", len(parts), err)
		}
		out[familyName(family)] = parts[0]
	}
	return out
}

func familyName(f netfilter.Family) string {
	if f == netfilter.IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

func fate(t tester, r *simulator.Rules, p simulator.Packet) simulator.Fate {
	t.Helper()
	f, err := r.Fate(p)
	if err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	return f
}

// senders are users and groups that the settings of cases name, and others.
var senders = [][2]uint32{
	{1000, 1000}, {1337, 1337}, {1337, 1000}, {1000, 1337}, {3, 1}, {3, 1000}, {4, 2}, {4, 1000},
	{1000, 1}, {1000, 2}, {1000, 888}, {1000, 202}, {1000, 5001}, {1000, 5002},
}

var portsOfPackets = []int{22, 53, 80, 4000, 5000, 6000, 7000, 15008, 15020, 15021, 15090, 31000, 32000}

// target is an address, and the interfaces by which packets to it leave.
type target struct {
	to         string
	own        bool
	interfaces []string
}

var outer = []string{"eth0", "eth1", "not-istio-nic"}

var targets = []target{
	{"127.0.0.1", true, []string{"lo"}}, {"127.1.2.3", true, []string{"lo"}}, {"127.0.0.53", true, []string{"lo"}}, {"10.0.0.5", true, []string{"lo"}},
	{"9.9.9.9", false, outer}, {"1.1.1.1", false, outer}, {"10.1.2.3", false, outer}, {"8.8.8.8", false, outer},
	{"::1", true, []string{"lo"}}, {"fd00::5", true, []string{"lo"}}, {"::127.0.0.53", false, outer}, {"2001:db8::9", false, outer}, {"2600::1", false, outer},
}

// packetsFor returns packets of all kinds for the settings of a case.
func packetsFor(s *Settings) (out []simulator.Packet) {
	for _, to := range targets {
		address := netip.MustParseAddr(to.to)
		if !s.covers(address) {
			continue
		}
		for _, port := range portsOfPackets {
			for _, protocol := range []string{"tcp", "udp"} {
				base := simulator.Packet{Protocol: protocol, To: address, ToPort: port, ToThisMachine: to.own}
				out = append(append(out, sent(base, to)...), received(base, to)...)
			}
		}
	}
	if s.Mode == TProxy {
		out = withMarks(out)
	}
	return out
}

func sources(to netip.Addr) []netip.Addr {
	if to.Is4() {
		return []netip.Addr{netip.MustParseAddr("10.0.0.5"), ownSource[netfilter.IPv4]}
	}
	return []netip.Addr{netip.MustParseAddr("fd00::5"), ownSource[netfilter.IPv6]}
}

func sent(p simulator.Packet, to target) (out []simulator.Packet) {
	p.Output = true
	for _, source := range sources(p.To) {
		for _, sender := range senders {
			for _, by := range to.interfaces {
				for _, fromPort := range []int{40000, 15053} {
					p.From, p.User, p.Group, p.Interface, p.FromPort = source, sender[0], sender[1], by, fromPort
					out = append(out, p)
				}
			}
		}
	}
	return out
}

func received(p simulator.Packet, to target) (out []simulator.Packet) {
	from := []string{"192.0.2.7", "127.0.0.53"}
	if p.To.Is6() {
		from = []string{"2001:db8:7::7", "::127.0.0.53"}
	}
	if p.To.IsLoopback() {
		from = nil // The kernel drops such packets.
	}
	for _, source := range from {
		for _, by := range append([]string{"eth2"}, outer...) {
			for _, fromPort := range []int{40000, 53} {
				p.From, p.Interface, p.FromPort = netip.MustParseAddr(source), by, fromPort
				out = append(out, p)
			}
		}
	}
	// Packets of the machine to itself arrive too. Only the table mangle sees them as
	// anything but a part of their connection, which began at the other hook.
	if to.own {
		p.From, p.Interface, p.FromPort, p.Established = sources(p.To)[0], "lo", 40000, true
		out = append(out, p)
	}
	return out
}

// withMarks returns the packets also as later ones, and with the marks of TPROXY.
func withMarks(packets []simulator.Packet) (out []simulator.Packet) {
	for _, p := range packets {
		for _, later := range []bool{false, true} {
			for _, mark := range []uint32{0, 1337} {
				if mark != 0 && !p.Output && p.Interface != "lo" {
					continue // Only programs of the machine mark packets.
				}
				for _, connMark := range []uint32{0, 1337} {
					if connMark != 0 && !p.Established && !later {
						continue // The connection begins.
					}
					q := p
					q.Established, q.Mark, q.ConnMark = p.Established || later, mark, connMark
					out = append(out, q)
				}
			}
		}
	}
	return out
}
