// Package feedback combines what proxies acknowledge, fetch and refuse. Callers give it the
// ProxySyncState of each proxy and the problems of a publication. It returns the status of
// each object (ObjectStatuses), the status of each proxy, the time that changes take to
// reach the proxies (Convergence), and problems for a report (Tally). The package finds no
// proxies itself and locks none (docs/decisions/019-feedback.md).
//
// Read in this order: status.go (the words), syncstate.go, objectstatus.go,
// workloads.go, presence.go, convergence.go, problems.go, withheldkeys.go.
package feedback
