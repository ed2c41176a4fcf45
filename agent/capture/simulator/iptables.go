package simulator

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ReadIPTables reads rules as iptables-restore does. The text may contain several parts, as
// for two families; lines that are no rules, such as "iptables-save", are between them.
// Parts are numbered from 0 at each table that occurs again.
func ReadIPTables(text string) ([]*Rules, error) {
	var parts []*Rules
	seen := map[string]bool{}
	var table string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		words := fields(line)
		switch {
		case len(words) == 0 || line == "COMMIT" || strings.HasPrefix(line, "#") || strings.HasSuffix(words[0], "tables-save"):
		case line[0] == '*':
			if table = strings.TrimSpace(line[1:]); len(parts) == 0 || seen[table] {
				parts, seen = append(parts, newRules()), map[string]bool{}
			}
			seen[table] = true
		case len(parts) == 0:
			return nil, fmt.Errorf("%q comes before any table", line)
		default:
			if err := parts[len(parts)-1].readIPTables(table, words); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
		}
	}
	return parts, nil
}

// fields splits a line at spaces outside of quotes.
func fields(line string) (out []string) {
	var word strings.Builder
	quoted := false
	for _, r := range line + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case (r == ' ' || r == '\t') && !quoted:
			if word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return out
}

func (r *Rules) readIPTables(table string, words []string) error {
	switch {
	case words[0][0] == ':':
		r.declare(table, words[0][1:])
		return nil
	case words[0] == "-N":
		r.declare(table, words[1])
		return nil
	case words[0] == "-A" || words[0] == "-I":
		c := r.declare(table, words[1])
		at, rest := len(c.rules), words[2:]
		if n, err := strconv.Atoi(rest[0]); words[0] == "-I" && err == nil {
			at, rest = n-1, rest[1:]
		} else if words[0] == "-I" {
			at = 0
		}
		s, err := iptablesStep(table, rest)
		c.rules = slices.Insert(c.rules, at, s)
		return err
	}
	return fmt.Errorf("unknown command %s", words[0])
}

// declare returns a chain. Those of the kernel are called at their hook.
func (r *Rules) declare(table, name string) *chain {
	c := r.chain(table + " " + name)
	c.table, c.hooked, c.output = table, name == "PREROUTING" || name == "OUTPUT", name == "OUTPUT"
	return c
}

func iptablesStep(table string, words []string) (step, error) {
	s := step{text: strings.Join(words, " ")}
	negated, module := false, ""
	for i := 0; i < len(words); i++ {
		word := words[i]
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		switch word {
		case "!":
			negated = true
			continue
		case "-m":
			module, i = value, i+1
			continue
		case "--comment":
			i++
			continue
		case "--mark":
			word = module + ":--mark" // The option of two modules.
		case "-j":
			var err error
			s.actions, err = iptablesActions(table, words[i+1:])
			return s, err
		}
		holds, err := iptablesCondition(word, value)
		if err != nil {
			return s, err
		}
		s.holds = append(s.holds, not(negated, holds))
		negated, i = false, i+1
	}
	return s, fmt.Errorf("the rule does nothing")
}

func iptablesCondition(name, value string) (func(Packet) bool, error) {
	switch name {
	case "-p":
		return func(p Packet) bool { return p.Protocol == value }, nil
	case "-i":
		return func(p Packet) bool { return !p.Output && p.Interface == value }, nil
	case "-o":
		return func(p Packet) bool { return p.Output && p.Interface == value }, nil
	case "-s", "-d":
		block, err := netip.ParsePrefix(value)
		if name == "-s" {
			return within(block.Masked(), from), err
		}
		return within(block.Masked(), to), err
	case "--dport", "--dports", "--sport":
		ports, err := numbers(value)
		if name == "--sport" {
			return func(p Packet) bool { return slices.Contains(ports, p.FromPort) }, err
		}
		return func(p Packet) bool { return slices.Contains(ports, p.ToPort) }, err
	case "--uid-owner", "--gid-owner":
		id, err := ownerID(value)
		if name == "--uid-owner" {
			return func(p Packet) bool { return p.User == id }, err
		}
		return func(p Packet) bool { return p.Group == id }, err
	case "mark:--mark", "connmark:--mark":
		n, err := strconv.Atoi(value)
		if name == "mark:--mark" {
			return func(p Packet) bool { return p.Mark == uint32(n) }, err
		}
		return func(p Packet) bool { return p.ConnMark == uint32(n) }, err
	case "--ctstate":
		return stateIn(strings.Split(strings.ToLower(value), ","))
	case "--dst-type":
		if value == "LOCAL" {
			return func(p Packet) bool { return p.ToThisMachine }, nil
		}
	}
	return nil, fmt.Errorf("unknown condition %s %s", name, value)
}

func numbers(text string) (out []int, err error) {
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// Groups are numbers for names of groups in rules.
var Groups = map[string]uint32{"java": 5001, "ftp": 5002}

func ownerID(text string) (uint32, error) {
	if id, ok := Groups[text]; ok {
		return id, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

func stateIn(states []string) (func(Packet) bool, error) {
	for _, state := range states {
		if !slices.Contains([]string{"new", "related", "established", "invalid"}, state) {
			return nil, fmt.Errorf("unknown state %s", state)
		}
	}
	return func(p Packet) bool {
		now := "new"
		switch {
		case p.Invalid:
			now = "invalid"
		case p.Established:
			now = "established"
		}
		return slices.Contains(states, now)
	}, nil
}

func iptablesActions(table string, words []string) ([]action, error) {
	options := map[string]string{}
	for i := 1; i < len(words); i++ {
		if i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			options[words[i]] = words[i+1]
			i++
			continue
		}
		options[words[i]] = ""
	}
	number := func(names ...string) (int, error) {
		for _, name := range names {
			if text, ok := options[name]; ok {
				return strconv.Atoi(text)
			}
		}
		return 0, fmt.Errorf("%s lacks one of %q", words[0], names)
	}
	var err error
	a := action{}
	switch target := words[0]; target {
	case "RETURN", "ACCEPT", "DROP":
		a.kind = strings.ToLower(target)
	case "REDIRECT":
		a.kind = "redirect"
		a.number, err = number("--to-ports", "--to-port")
	case "TPROXY":
		return tproxyActions(options)
	case "MARK":
		a.kind = "mark"
		a.number, err = number("--set-mark")
	case "CT":
		a.kind = "zone"
		a.number, err = number("--zone")
	case "CONNMARK":
		a.kind = "savemark"
		if _, restore := options["--restore-mark"]; restore {
			a.kind = "restoremark"
		}
	default:
		a.kind, a.chain = "jump", table+" "+target
	}
	return []action{a}, err
}

// tproxyActions are those of the target TPROXY, which may also mark the packet.
func tproxyActions(options map[string]string) ([]action, error) {
	port, err := strconv.Atoi(options["--on-port"])
	out := []action{{kind: "tproxy", number: port}}
	if mark, _, _ := strings.Cut(options["--tproxy-mark"], "/"); mark != "" && err == nil {
		var n int
		n, err = strconv.Atoi(mark)
		out = append(out, action{kind: "mark", number: n})
	}
	return append(out, action{kind: "accept"}), err
}
