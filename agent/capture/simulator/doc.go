// Package simulator tells what becomes of a packet under rules that are given as text, in
// the forms of iptables and of nft. It judges rules in tests, those of this project and
// those that Istio writes. It knows only what these rules use, and refuses anything else,
// so that no rule is passed over.
//
//	packet.go    packets, and what becomes of them
//	walk.go      the way of a packet through the chains
//	iptables.go  rules as iptables-restore reads them
//	nft.go       rules as nft reads them
package simulator
