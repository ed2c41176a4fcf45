package simulator

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ReadNFT reads rules as nft does: lines "add rule FAMILY TABLE CHAIN …", or tables and
// chains in braces.
func ReadNFT(text string) (*Rules, error) {
	n := &nft{rules: newRules()}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := n.read(line); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return n.rules, nil
}

type nft struct {
	rules        *Rules
	table, chain string // the ones whose braces are open
}

func (n *nft) read(line string) error {
	words := fields(strings.NewReplacer("{", " { ", "}", " } ", ";", " ; ", ",", " , ").Replace(line))
	switch {
	case words[0] == "}":
		if n.chain == "" {
			n.table = ""
		}
		n.chain = ""
	case words[0] == "table":
		n.table = words[2]
	case words[0] == "chain":
		n.chain = n.table + " " + words[1]
		n.rules.chain(n.chain)
	case words[0] == "type":
		return n.hook(n.chain, words)
	case slices.Contains([]string{"add", "flush", "delete"}, words[0]) && words[1] == "table":
	case words[0] == "add" && words[1] == "chain":
		name := words[3] + " " + words[4]
		n.rules.chain(name)
		if at := slices.Index(words, "type"); at > 0 {
			return n.hook(name, words[at:])
		}
	case words[0] == "add" && words[1] == "rule":
		return n.rule(words[3], words[4], -1, words[5:])
	case words[0] == "insert" && words[1] == "rule":
		if words[5] != "index" {
			return n.rule(words[3], words[4], 0, words[5:])
		}
		at, err := strconv.Atoi(words[6])
		if err != nil {
			return err
		}
		return n.rule(words[3], words[4], at, words[7:])
	case n.chain != "":
		table, name, _ := strings.Cut(n.chain, " ")
		return n.rule(table, name, -1, words)
	default:
		return fmt.Errorf("unknown line")
	}
	return nil
}

// hook reads "type nat hook output priority -100 ;".
func (n *nft) hook(name string, words []string) error {
	c := n.rules.chain(name)
	hook, priority := slices.Index(words, "hook"), slices.Index(words, "priority")
	if hook < 0 || priority < 0 {
		return fmt.Errorf("no hook")
	}
	number, err := strconv.Atoi(words[priority+1])
	if err != nil {
		return err
	}
	switch {
	case words[1] == "nat":
		c.table = "nat"
	case number <= -300:
		c.table = "raw"
	default:
		c.table = "mangle"
	}
	c.hooked, c.output = true, words[hook+1] == "output"
	return nil
}

func (n *nft) rule(table, name string, at int, words []string) error {
	s := step{text: strings.Join(words, " ")}
	r := &words
	for len(*r) > 0 {
		if err := s.nftWord(table, r); err != nil {
			return err
		}
	}
	if len(s.actions) == 0 {
		return fmt.Errorf("the rule does nothing")
	}
	c := n.rules.chain(table + " " + name)
	if at < 0 {
		at = len(c.rules)
	}
	c.rules = slices.Insert(c.rules, at, s)
	return nil
}

// take removes words from the beginning if they are these.
func take(r *[]string, words ...string) bool {
	if len(*r) < len(words) || !slices.Equal((*r)[:len(words)], words) {
		return false
	}
	*r = (*r)[len(words):]
	return true
}

func next(r *[]string) string {
	if len(*r) == 0 {
		return ""
	}
	word := (*r)[0]
	*r = (*r)[1:]
	return word
}

// nftWord reads one condition or action from the beginning of r.
func (s *step) nftWord(table string, r *[]string) error {
	add := func(a action) error { s.actions = append(s.actions, a); return nil }
	number := func(kind, text string) error {
		n, err := strconv.Atoi(strings.TrimPrefix(text, ":"))
		return cmpErr(err, add(action{kind: kind, number: n}))
	}
	switch {
	case take(r, "counter"):
		return nil
	case take(r, "comment"):
		next(r)
		return nil
	case take(r, "return"):
		return add(action{kind: "return"})
	case take(r, "accept"):
		return add(action{kind: "accept"})
	case take(r, "drop"):
		return add(action{kind: "drop"})
	case take(r, "jump"):
		return add(action{kind: "jump", chain: table + " " + next(r)})
	case take(r, "redirect", "to"):
		return number("redirect", next(r))
	case take(r, "tproxy", "ip", "to"), take(r, "tproxy", "ip6", "to"):
		return number("tproxy", next(r))
	case take(r, "ct", "zone", "set"):
		return number("zone", next(r))
	case take(r, "ct", "mark", "set", "mark"), take(r, "ct", "mark", "set", "meta", "mark"):
		return add(action{kind: "savemark"})
	case take(r, "meta", "mark", "set", "ct", "mark"):
		return add(action{kind: "restoremark"})
	case take(r, "meta", "mark", "set"):
		return number("mark", next(r))
	}
	holds, err := nftCondition(r)
	s.holds = append(s.holds, holds)
	return err
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// nftFamilies are conditions on the family, which "ip daddr" and its like imply.
var nftFamilies = map[string]func(Packet) bool{
	"ip":  func(p Packet) bool { return p.To.Is4() },
	"ip6": func(p Packet) bool { return p.To.Is6() },
}

func nftCondition(r *[]string) (func(Packet) bool, error) {
	switch {
	case take(r, "meta", "l4proto"):
		protocol := next(r)
		return func(p Packet) bool { return p.Protocol == protocol }, nil
	case take(r, "meta", "nfproto", "ipv4"):
		return nftFamilies["ip"], nil
	case take(r, "meta", "nfproto", "ipv6"):
		return nftFamilies["ip6"], nil
	case take(r, "fib", "daddr", "type", "local"):
		return func(p Packet) bool { return p.ToThisMachine }, nil
	case take(r, "ct", "state"):
		states := []string{next(r)}
		for take(r, ",") {
			states = append(states, next(r))
		}
		return stateIn(states)
	case take(r, "ct", "mark"):
		return nftNumber(r, func(p Packet) int { return int(p.ConnMark) })
	}
	take(r, "meta")
	name := next(r)
	switch name {
	case "iifname", "oifname":
		value, output := next(r), name == "oifname"
		return func(p Packet) bool { return p.Output == output && p.Interface == value }, nil
	case "mark":
		return nftNumber(r, func(p Packet) int { return int(p.Mark) })
	case "skuid":
		return nftNumber(r, func(p Packet) int { return int(p.User) })
	case "skgid":
		return nftNumber(r, func(p Packet) int { return int(p.Group) })
	case "ip", "ip6":
		return nftAddress(name, r)
	case "tcp", "udp":
		of := func(p Packet) int { return p.ToPort }
		if next(r) == "sport" {
			of = func(p Packet) int { return p.FromPort }
		}
		holds, err := nftNumber(r, of)
		return func(p Packet) bool { return p.Protocol == name && holds(p) }, err
	}
	return nil, fmt.Errorf("unknown condition %s", name)
}

func nftAddress(family string, r *[]string) (func(Packet) bool, error) {
	of := to
	switch side := next(r); side {
	case "daddr":
	case "saddr":
		of = from
	default:
		return nil, fmt.Errorf("unknown address %s", side)
	}
	negated := take(r, "!=")
	block, err := netip.ParsePrefix(next(r))
	holds := not(negated, within(block.Masked(), of))
	return func(p Packet) bool { return nftFamilies[family](p) && holds(p) }, err
}

// nftNumber reads a number or a set, perhaps after "!=".
func nftNumber(r *[]string, of func(Packet) int) (func(Packet) bool, error) {
	negated := take(r, "!=")
	words := []string{next(r)}
	if words[0] == "{" {
		words = nil
		for !take(r, "}") {
			if word := next(r); word == "" {
				return nil, fmt.Errorf("a set has no end")
			} else if word != "," {
				words = append(words, word)
			}
		}
	}
	var values []int
	for _, word := range words {
		id, err := ownerID(word)
		if err != nil {
			return nil, err
		}
		values = append(values, int(id))
	}
	return not(negated, func(p Packet) bool { return slices.Contains(values, of(p)) }), nil
}
