package netfilter

import "net/netip"

// Ruleset is a set of chains, for IPv4 and IPv6. The names of its chains are unique
// within each table.
type Ruleset struct {
	Chains []*Chain
}

// Chain is a list of rules. The first rule that fits a packet and returns, accepts, drops
// or redirects it is the last one that is asked. A packet that reaches the end of a chain
// goes on in the chain that called it.
type Chain struct {
	Table Table
	// Name is in lower case, with dashes: "output-dns".
	Name string
	// Hook is where the kernel calls the chain. It is empty for chains that only other
	// chains call.
	Hook  Hook
	Rules []Rule
}

// Table is one of the tables of iptables. It says when the kernel calls the chains.
type Table string

// The tables, in the order in which a packet meets them.
const (
	Raw    Table = "raw"    // before connections are tracked
	Mangle Table = "mangle" // all packets
	NAT    Table = "nat"    // the first packet of a connection
)

// Tables returns all tables, in the order in which a packet meets them.
func Tables() []Table { return []Table{Raw, Mangle, NAT} }

// Hook is a place on the way of a packet through the kernel.
type Hook string

// The hooks that are used.
const (
	Prerouting Hook = "prerouting" // packets that arrive, also over the loopback interface
	Output     Hook = "output"     // packets that a program of this machine sends
)

// Family is a version of the Internet protocol.
type Family int

// The families. The zero value means both.
const (
	Both Family = 0
	IPv4 Family = 4
	IPv6 Family = 6
)

// Protocol is a transport protocol.
type Protocol string

// The protocols that are used.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// State is the state of the connection of a packet.
type State string

// The states that are used.
const (
	New     State = "new"     // the packet begins a connection
	Invalid State = "invalid" // the packet belongs to no connection and begins none
)

// Rule does something with packets that fulfil all of its conditions.
type Rule struct {
	If   Match
	Then Action
	// Comment is shown beside the rule. It has only letters, digits, spaces, dashes,
	// dots and colons.
	Comment string
}

// Match has the conditions of a rule. A field with its zero value is no condition.
type Match struct {
	// Family restricts the rule to one family. A rule with From, To or NotTo is
	// restricted to theirs.
	Family Family
	// In and Out are names of interfaces: by which a packet came, by which it leaves.
	In, Out  string
	Protocol Protocol
	// From and To are where a packet comes from and where it goes.
	From, To, NotTo netip.Prefix
	// FromPort, ToPort and NotToPorts require a Protocol.
	FromPort, ToPort int
	NotToPorts       []int
	// Owner is the user or group whose program sends the packet. None of NotOwners may
	// be.
	Owner     *Owner
	NotOwners []Owner
	// Mark and ConnMark are the marks of the packet and of its connection.
	Mark, ConnMark uint32
	State          State
	// ToThisMachine means that the destination is an address of this machine. Packets
	// that the machine only forwards, such as those of containers, do not fit.
	ToThisMachine bool
}

// family returns the family of the packets that fit.
func (m Match) family() Family {
	for _, block := range []netip.Prefix{m.From, m.To, m.NotTo} {
		switch {
		case !block.IsValid():
		case block.Addr().Is4():
			return IPv4
		default:
			return IPv6
		}
	}
	return m.Family
}

// Owner is a user or a group, by number.
type Owner struct {
	Group bool
	ID    uint32
}

// Action is what happens with a packet. It is one of the types of this package.
type Action interface{ action() }

type (
	// Return goes on in the chain that called this one.
	Return struct{}
	// Drop forgets the packet.
	Drop struct{}
	// Jump goes on in another chain of the same table.
	Jump struct{ Chain string }
	// Redirect changes the destination of a connection to a port of this machine.
	Redirect struct{ Port int }
	// TProxy gives a connection to the program that listens at a port of this machine
	// with the option IP_TRANSPARENT, and changes no address. It requires Protocol.
	TProxy struct{ Port int }
	// SaveMark makes the mark of a packet that of its connection.
	SaveMark struct{}
	// RestoreMark makes the mark of a connection that of the packet, which is then routed
	// again.
	RestoreMark struct{}
	// Zone tracks the connection of a packet apart from those of other zones. If several
	// rules set a zone, the first one counts.
	Zone struct{ ID int }
)

func (Return) action()      {}
func (Drop) action()        {}
func (Jump) action()        {}
func (Redirect) action()    {}
func (TProxy) action()      {}
func (SaveMark) action()    {}
func (RestoreMark) action() {}
func (Zone) action()        {}
