// Package capture decides which connections of a machine go through its proxy, and writes
// the rules of the packet filter for that (docs/decisions/045-capture.md).
//
//	settings.go  what is wanted, checked
//	flags.go     the same as text, with the names of Istio's flags, and its errors
//	machine.go   what names in flags stand for
//	sample.go    examples of captured connections
//	rules.go     the rules, for outbound and inbound connections
//	dns.go       the rules for DNS
//	tproxy.go    the rules for TPROXY
//
// Inner rooms: netfilter is the text of rules, host changes the machine, probe makes
// connections to see what becomes of them. Packages of the server are not imported here:
// the agent is copied to many machines.
//
// The functions of this package have no effect on the machine and may be called
// concurrently.
package capture
