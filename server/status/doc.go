// Package status computes the status of objects: how many proxies of all replicas an
// object affects, how many of them run it, and the conditions that follow. Answers add
// the status to the object; it is not stored (docs/decisions/019-feedback.md).
//
//	discovery.ObjectStatuses ─┐
//	                          ├─▶ Board ─▶ Table ─▶ the status of an object, and its JSON
//	reports of other replicas ┘
//
//	board.go        the recent table, refreshed on request and for watches
//	table.go        the statuses at one moment
//	condition.go    the conditions of an object
//	total.go        what the proxies of all replicas run of an object
//	report.go       what this replica reports to the others
//	peerreports.go  what the others report
//	proxyreturn.go  proxies that may reconnect after a start
//	cachedprobe.go  a look at something that changes, shared by all who ask
//	interned.go     equal statuses, kept once
//	recorder.go     statuses as revisions of the store, if it keeps them
package status
