// Package host puts rules of capture into the kernel of this machine, tells which are there,
// and removes them. It runs nft or iptables-restore, and changes routing by netlink.
//
//	host.go       what is wanted, and what is there
//	install.go    install and remove, each as a whole or not at all
//	program.go    programs that are run
//	nft.go        rules by nft
//	iptables.go   rules by iptables-restore, where there is no nft
//	strangers.go  rules of other tools
//	routing*.go   routing rules of TPROXY, and an address of the loopback interface
//	rights.go     rights and the lock
//
// All of it concerns the network namespace of the calling process. Calls of several
// processes exclude each other; a call that finds another one at work fails.
package host
