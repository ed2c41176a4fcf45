// Package netfilter describes rules of the kernel's packet filter as values, and writes
// them as text: one form for nft, one for iptables-restore and ip6tables-restore. Both
// texts of a Ruleset mean the same.
//
//	rules.go     rulesets, chains, rules, conditions, actions
//	nft.go       the text for nft
//	iptables.go  the text for iptables-restore
//
// The package runs no program and opens no socket. Its functions may be called
// concurrently; a Ruleset must not be changed meanwhile.
package netfilter
