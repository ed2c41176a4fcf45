package simulator

import (
	"fmt"
	"net/netip"
)

// Rules are the chains of one machine, for one family or both.
type Rules struct {
	chains map[string]*chain
	order  []string
}

// chain is a list of rules. A chain with a hook is called by the kernel.
type chain struct {
	table  string // raw, mangle or nat
	output bool
	hooked bool
	rules  []step
}

// step is a rule: conditions, and then actions.
type step struct {
	text    string
	holds   []func(Packet) bool
	actions []action
}

type action struct {
	kind   string // return, accept, drop, jump, redirect, tproxy, mark, savemark, restoremark, zone
	number int
	chain  string
}

func newRules() *Rules { return &Rules{chains: map[string]*chain{}} }

func (r *Rules) chain(name string) *chain {
	if r.chains[name] == nil {
		r.chains[name] = &chain{}
		r.order = append(r.order, name)
	}
	return r.chains[name]
}

// mostSteps bounds the way of a packet, which would not end if chains called each other.
const mostSteps = 10_000

type walk struct {
	rules  *Rules
	packet Packet
	fate   Fate
	steps  int
	err    error
}

// Fate returns what becomes of a packet at its hook. The kernel asks the table nat only
// about the first packet of a connection.
func (r *Rules) Fate(p Packet) (Fate, error) {
	w := &walk{rules: r, packet: p, fate: Fate{Mark: p.Mark, ConnMark: p.ConnMark}}
	for _, table := range []string{"raw", "mangle", "nat"} {
		if table == "nat" && (p.Established || p.Invalid) {
			continue
		}
		for _, name := range r.order {
			c := r.chains[name]
			if c.hooked && c.table == table && c.output == p.Output && w.run(name) == "drop" {
				w.fate.Dropped = true
				return w.fate, w.err
			}
		}
	}
	return w.fate, w.err
}

// run asks the rules of a chain. It returns "" at the end of the chain or if a rule
// returns, and otherwise the verdict.
func (w *walk) run(name string) string {
	c := w.rules.chains[name]
	if c == nil {
		w.err = fmt.Errorf("there is no chain %s", name)
		return "accept"
	}
	for _, s := range c.rules {
		if w.steps++; w.steps > mostSteps {
			w.err = fmt.Errorf("%s: chains call each other without end", name)
			return "accept"
		}
		if !w.fits(s) {
			continue
		}
		for _, a := range s.actions {
			switch verdict := w.act(a); verdict {
			case "":
			case "return":
				return ""
			default:
				return verdict
			}
		}
	}
	return ""
}

func (w *walk) fits(s step) bool {
	for _, holds := range s.holds {
		if !holds(w.packet) {
			return false
		}
	}
	return true
}

func (w *walk) act(a action) string {
	switch a.kind {
	case "return", "accept", "drop":
		return a.kind
	case "jump":
		return w.run(a.chain)
	case "redirect":
		w.fate.Redirected = a.number
		return "accept"
	case "tproxy":
		w.fate.TProxied = a.number
	case "mark":
		w.packet.Mark = uint32(a.number)
	case "savemark":
		w.packet.ConnMark = w.packet.Mark
	case "restoremark":
		w.packet.Mark = w.packet.ConnMark
	case "zone":
		if w.fate.Zone == 0 {
			w.fate.Zone = a.number
		}
	default:
		w.err = fmt.Errorf("unknown action %q", a.kind)
	}
	w.fate.Mark, w.fate.ConnMark = w.packet.Mark, w.packet.ConnMark
	return ""
}

// not returns the opposite of a condition if negated is true.
func not(negated bool, holds func(Packet) bool) func(Packet) bool {
	if !negated {
		return holds
	}
	return func(p Packet) bool { return !holds(p) }
}

func within(block netip.Prefix, of func(Packet) netip.Addr) func(Packet) bool {
	return func(p Packet) bool { return block.Contains(of(p)) }
}

func from(p Packet) netip.Addr { return p.From }
func to(p Packet) netip.Addr   { return p.To }
