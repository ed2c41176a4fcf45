package netfilter

import (
	"fmt"
	"net/netip"
	"strings"
)

// NFTTable is the table of nft that has all chains, of the family inet.
const NFTTable = "pilot-agent"

// nftHooks are the priorities of the chains that the kernel calls. Numbers work in all
// versions of nft. In the table nat, other programs such as Docker have -100. Connections
// that they lead to a container, because it has published a port, are theirs. Questions of
// DNS that a program sends are ours, also in a container, where Docker redirects them.
var nftHooks = map[Table]map[Hook]string{
	Raw:    {Prerouting: "type filter hook prerouting priority -300", Output: "type filter hook output priority -300"},
	Mangle: {Prerouting: "type filter hook prerouting priority -150", Output: "type route hook output priority -150"},
	NAT:    {Prerouting: "type nat hook prerouting priority -90", Output: "type nat hook output priority -110"},
}

// NFT returns a script for nft that puts the ruleset in the place of the one before, in
// one step.
func (r Ruleset) NFT() string {
	var out strings.Builder
	out.WriteString(NFTRemoval())
	fmt.Fprintf(&out, "table inet %s {\n", NFTTable)
	for i, chain := range r.Chains {
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "\tchain %s {\n", nftName(chain.Table, chain.Name))
		if chain.Hook != "" {
			fmt.Fprintf(&out, "\t\t%s; policy accept;\n", nftHooks[chain.Table][chain.Hook])
		}
		for _, rule := range chain.Rules {
			for _, line := range nftRules(chain.Table, rule) {
				fmt.Fprintf(&out, "\t\t%s\n", line)
			}
		}
		out.WriteString("\t}\n")
	}
	out.WriteString("}\n")
	return out.String()
}

// NFTRemoval returns a script for nft that removes any ruleset, and is no error if there
// is none.
func NFTRemoval() string {
	return fmt.Sprintf("add table inet %[1]s\ndelete table inet %[1]s\n", NFTTable)
}

// nftName returns the name of a chain. One table of nft has the chains of all tables.
func nftName(table Table, chain string) string { return string(table) + "-" + chain }

// nftRules returns the lines of a rule. The target tproxy needs one for each family.
func nftRules(table Table, rule Rule) []string {
	if _, ok := rule.Then.(TProxy); ok && rule.If.family() == Both {
		four, six := rule, rule
		four.If.Family, six.If.Family = IPv4, IPv6
		return append(nftRules(table, four), nftRules(table, six)...)
	}
	words := append(nftMatch(rule.If), nftAction(table, rule))
	if rule.Comment != "" {
		words = append(words, fmt.Sprintf("comment %q", rule.Comment))
	}
	return []string{strings.Join(words, " ")}
}

func nftMatch(m Match) (words []string) {
	add := func(holds bool, format string, values ...any) {
		if holds {
			words = append(words, fmt.Sprintf(format, values...))
		}
	}
	byAddress := m.From.IsValid() || m.To.IsValid() || m.NotTo.IsValid()
	add(m.In != "", "iifname %q", m.In)
	add(m.Out != "", "oifname %q", m.Out)
	add(m.Family == IPv4 && !byAddress, "meta nfproto ipv4")
	add(m.Family == IPv6 && !byAddress, "meta nfproto ipv6")
	add(m.From.IsValid(), "%s saddr %s", nftFamily(m.From), m.From)
	add(m.To.IsValid(), "%s daddr %s", nftFamily(m.To), m.To)
	add(m.NotTo.IsValid(), "%s daddr != %s", nftFamily(m.NotTo), m.NotTo)
	add(m.ToThisMachine, "fib daddr type local")
	add(m.Protocol != "" && m.FromPort == 0 && m.ToPort == 0 && len(m.NotToPorts) == 0, "meta l4proto %s", m.Protocol)
	add(m.FromPort != 0, "%s sport %d", m.Protocol, m.FromPort)
	add(m.ToPort != 0, "%s dport %d", m.Protocol, m.ToPort)
	add(len(m.NotToPorts) > 0, "%s dport != { %s }", m.Protocol, list(m.NotToPorts, ", "))
	add(m.State != "", "ct state %s", m.State)
	if m.Owner != nil {
		add(true, "meta %s %d", nftOwner(*m.Owner), m.Owner.ID)
	}
	for _, owner := range m.NotOwners {
		add(true, "meta %s != %d", nftOwner(owner), owner.ID)
	}
	add(m.Mark != 0, "meta mark %d", m.Mark)
	add(m.ConnMark != 0, "ct mark %d", m.ConnMark)
	return words
}

func nftFamily(block netip.Prefix) string {
	if block.Addr().Is4() {
		return "ip"
	}
	return "ip6"
}

func nftOwner(o Owner) string {
	if o.Group {
		return "skgid"
	}
	return "skuid"
}

func nftAction(table Table, rule Rule) string {
	switch a := rule.Then.(type) {
	case Return:
		return "return"
	case Drop:
		return "drop"
	case Jump:
		return "jump " + nftName(table, a.Chain)
	case Redirect:
		return fmt.Sprintf("redirect to :%d", a.Port)
	case TProxy:
		family := "ip"
		if rule.If.family() == IPv6 {
			family = "ip6"
		}
		return fmt.Sprintf("tproxy %s to :%d accept", family, a.Port)
	case SaveMark:
		return "ct mark set meta mark"
	case RestoreMark:
		return "meta mark set ct mark"
	case Zone:
		return fmt.Sprintf("ct zone set %d", a.ID)
	}
	panic(fmt.Sprintf("netfilter: no text for the action %T", rule.Then))
}

// list returns numbers with a text between them.
func list(numbers []int, between string) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, between)
}
