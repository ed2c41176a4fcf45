// Package reach says who can reach whom in a mesh: for each caller and each port of a service, it
// asks package explain what the listeners of the callee do with all calls of the caller. The
// listeners are those that package compile gives to the callee's proxy.
//
//	reach.go      a question and its answer
//	selector.go   the callers and services that a question is about
//	fleet.go      the workloads that have a proxy
//	callers.go    the callers of a mesh
//	callees.go    the ports of services, and the listeners of their instances
//	pairs.go      what becomes of the calls of one caller to one port
//	rows.go       answers for several callers as one row
package reach
