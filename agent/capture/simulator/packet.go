package simulator

import (
	"fmt"
	"net/netip"
	"strings"
)

// Packet is the first packet of a connection, or a later one, at a hook of the kernel.
type Packet struct {
	// Output means that a program of the machine sends the packet. Otherwise it arrives.
	Output           bool
	Protocol         string // tcp or udp
	From, To         netip.Addr
	FromPort, ToPort int
	// Interface is that by which the packet comes or goes.
	Interface string
	// User and Group are those of the program that sends the packet.
	User, Group uint32
	// Mark and ConnMark are the marks of the packet and of its connection.
	Mark, ConnMark uint32
	// Established means that the packet is not the first of its connection, Invalid that it
	// belongs to none.
	Established, Invalid bool
	// ToThisMachine means that the destination is an address of the machine.
	ToThisMachine bool
}

func (p Packet) String() string {
	way := "in by"
	if p.Output {
		way = fmt.Sprintf("from user %d group %d by", p.User, p.Group)
	}
	s := fmt.Sprintf("%s %s %s: %s:%d to %s:%d", p.Protocol, way, p.Interface, p.From, p.FromPort, p.To, p.ToPort)
	if p.Established {
		s += " established"
	}
	if p.Mark != 0 || p.ConnMark != 0 {
		s += fmt.Sprintf(" mark %d of connection %d", p.Mark, p.ConnMark)
	}
	return s
}

// Fate is what becomes of a packet.
type Fate struct {
	Dropped bool
	// Redirected and TProxied are ports, or 0.
	Redirected, TProxied int
	// Zone is the zone in which the connection is tracked.
	Zone int
	// Mark and ConnMark are the marks afterwards.
	Mark, ConnMark uint32
}

// Text returns the fate in words. The marks are those of the packet before.
func (f Fate) Text(before Packet) string {
	var words []string
	add := func(holds bool, format string, values ...any) {
		if holds {
			words = append(words, fmt.Sprintf(format, values...))
		}
	}
	add(f.Dropped, "dropped")
	add(f.Redirected != 0, "redirected to %d", f.Redirected)
	add(f.TProxied != 0, "given to the program at %d", f.TProxied)
	add(f.Zone != 0, "in zone %d", f.Zone)
	add(f.Mark != before.Mark, "marked %d", f.Mark)
	add(f.ConnMark != before.ConnMark, "its connection marked %d", f.ConnMark)
	if len(words) == 0 {
		return "left alone"
	}
	return strings.Join(words, ", ")
}
