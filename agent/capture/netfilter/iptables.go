package netfilter

import (
	"fmt"
	"slices"
	"strings"
)

// ChainPrefix begins the name of every chain of ours in iptables. No other program uses
// it.
const ChainPrefix = "PILOT_"

// Held are the chains and rules of ours that the iptables of one family has now. A jump
// is the text of a rule in a chain of the kernel that calls a chain of ours, as in
// "OUTPUT -j PILOT_OUTPUT".
type Held map[Table]*HeldTable

// HeldTable is the part of Held in one table.
type HeldTable struct {
	Chains []string
	Jumps  []string
	// Rules are the rules of our chains, as iptables-save writes them: "-A CHAIN …".
	Rules []string
}

// ReadHeld finds what is ours in the output of iptables-save.
func ReadHeld(saved string) Held {
	held := Held{}
	var table *HeldTable
	var name Table
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "*"):
			name, table = Table(line[1:]), &HeldTable{}
		case table == nil || len(words) < 2:
		case strings.HasPrefix(line, ":"+ChainPrefix):
			table.Chains = append(table.Chains, words[0][1:])
		case words[0] == "-A" && strings.HasPrefix(words[1], ChainPrefix):
			table.Rules = append(table.Rules, line)
		case words[0] == "-A" && jumpsToUs(words):
			table.Jumps = append(table.Jumps, strings.TrimPrefix(line, "-A "))
		}
		if line == "COMMIT" && table != nil && len(table.Chains)+len(table.Jumps) > 0 {
			held[name] = table
		}
	}
	return held
}

func jumpsToUs(words []string) bool {
	at := slices.Index(words, "-j")
	return at >= 0 && at+1 < len(words) && strings.HasPrefix(words[at+1], ChainPrefix)
}

// IPTables returns a text for iptables-restore --noflush, or ip6tables-restore, that puts
// the ruleset in the place of what is held. iptables changes each table in one step.
func (r Ruleset) IPTables(family Family, held Held) string {
	var out strings.Builder
	for _, table := range Tables() {
		chains := r.chainsIn(table)
		now := held[table]
		if now == nil {
			now = &HeldTable{}
		}
		if len(chains) == 0 && len(now.Chains)+len(now.Jumps) == 0 {
			continue
		}
		writeTable(&out, table, chains, family, now)
	}
	return out.String()
}

// Restore returns a text for iptables-restore --noflush that makes what was held before
// replace what is held now.
func Restore(before, now Held) string {
	var out strings.Builder
	for _, table := range Tables() {
		was, is := before[table], now[table]
		if was == nil {
			was = &HeldTable{}
		}
		if is == nil {
			is = &HeldTable{}
		}
		if len(was.Chains)+len(was.Jumps)+len(is.Chains)+len(is.Jumps) == 0 {
			continue
		}
		begin(&out, table, was.Chains, is)
		for _, jump := range was.Jumps {
			chain, rest, _ := strings.Cut(jump, " ")
			fmt.Fprintf(&out, "%s %s\n", place(chain), rest)
		}
		for _, rule := range was.Rules {
			fmt.Fprintln(&out, rule)
		}
		end(&out, was.Chains, is)
	}
	return out.String()
}

func (r Ruleset) chainsIn(table Table) (out []*Chain) {
	for _, chain := range r.Chains {
		if chain.Table == table {
			out = append(out, chain)
		}
	}
	return out
}

// place returns the command that adds a rule to a chain of the kernel. Of what programs
// send, we decide first. Of what arrives, others decide first, such as Docker about ports of
// containers.
func place(chain string) string {
	if chain == "OUTPUT" {
		return "-I OUTPUT 1"
	}
	return "-A " + chain
}

func writeTable(out *strings.Builder, table Table, chains []*Chain, family Family, now *HeldTable) {
	names := make([]string, len(chains))
	for i, chain := range chains {
		names[i] = iptablesName(chain.Name)
	}
	begin(out, table, names, now)
	for _, chain := range chains {
		if chain.Hook != "" {
			fmt.Fprintf(out, "%s -j %s\n", place(strings.ToUpper(string(chain.Hook))), iptablesName(chain.Name))
		}
	}
	for _, chain := range chains {
		for _, rule := range chain.Rules {
			if of := rule.If.family(); of != Both && of != family {
				continue
			}
			words := append([]string{"-A", iptablesName(chain.Name)}, iptablesMatch(rule.If)...)
			if rule.Comment != "" {
				words = append(words, "-m", "comment", "--comment", fmt.Sprintf("%q", rule.Comment))
			}
			fmt.Fprintln(out, strings.Join(append(words, iptablesAction(rule)...), " "))
		}
	}
	end(out, names, now)
}

// begin declares and empties the chains, and removes what calls those of before.
func begin(out *strings.Builder, table Table, names []string, now *HeldTable) {
	fmt.Fprintf(out, "*%s\n", table)
	for _, name := range names {
		fmt.Fprintf(out, ":%s - [0:0]\n", name)
	}
	for _, name := range now.Chains {
		if !slices.Contains(names, name) {
			fmt.Fprintf(out, ":%s - [0:0]\n", name)
		}
	}
	for _, jump := range now.Jumps {
		fmt.Fprintf(out, "-D %s\n", jump)
	}
}

// end removes chains that are not among the names any more.
func end(out *strings.Builder, names []string, now *HeldTable) {
	for _, name := range now.Chains {
		if !slices.Contains(names, name) {
			fmt.Fprintf(out, "-X %s\n", name)
		}
	}
	out.WriteString("COMMIT\n")
}

// iptablesName returns the name of a chain: PILOT_OUTPUT_DNS for output-dns.
func iptablesName(chain string) string {
	return ChainPrefix + strings.ToUpper(strings.ReplaceAll(chain, "-", "_"))
}

func iptablesMatch(m Match) (words []string) {
	add := func(holds bool, format string, values ...any) {
		if holds {
			words = append(words, fmt.Sprintf(format, values...))
		}
	}
	add(m.In != "", "-i %s", m.In)
	add(m.Out != "", "-o %s", m.Out)
	add(m.From.IsValid(), "-s %s", m.From)
	add(m.To.IsValid(), "-d %s", m.To)
	add(m.NotTo.IsValid(), "! -d %s", m.NotTo)
	add(m.Protocol != "", "-p %s", m.Protocol)
	add(m.FromPort != 0, "--sport %d", m.FromPort)
	add(m.ToPort != 0, "--dport %d", m.ToPort)
	add(len(m.NotToPorts) == 1, "! --dport %s", list(m.NotToPorts, ","))
	add(len(m.NotToPorts) > 1, "-m multiport ! --dports %s", list(m.NotToPorts, ","))
	add(m.ToThisMachine, "-m addrtype --dst-type LOCAL")
	add(m.State != "", "-m conntrack --ctstate %s", strings.ToUpper(string(m.State)))
	if m.Owner != nil {
		add(true, "-m owner --%s %d", iptablesOwner(*m.Owner), m.Owner.ID)
	}
	for _, owner := range m.NotOwners {
		add(true, "-m owner ! --%s %d", iptablesOwner(owner), owner.ID)
	}
	add(m.Mark != 0, "-m mark --mark %d", m.Mark)
	add(m.ConnMark != 0, "-m connmark --mark %d", m.ConnMark)
	return words
}

func iptablesOwner(o Owner) string {
	if o.Group {
		return "gid-owner"
	}
	return "uid-owner"
}

func iptablesAction(rule Rule) []string {
	switch a := rule.Then.(type) {
	case Return:
		return []string{"-j RETURN"}
	case Drop:
		return []string{"-j DROP"}
	case Jump:
		return []string{"-j " + iptablesName(a.Chain)}
	case Redirect:
		return []string{fmt.Sprintf("-j REDIRECT --to-ports %d", a.Port)}
	case TProxy:
		return []string{fmt.Sprintf("-j TPROXY --on-port %d", a.Port)}
	case SaveMark:
		return []string{"-j CONNMARK --save-mark"}
	case RestoreMark:
		return []string{"-j CONNMARK --restore-mark"}
	case Zone:
		return []string{fmt.Sprintf("-j CT --zone %d", a.ID)}
	}
	panic(fmt.Sprintf("netfilter: no text for the action %T", rule.Then))
}
