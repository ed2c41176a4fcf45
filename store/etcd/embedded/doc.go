// Package embedded runs an etcd inside this process: a cluster of one, which listens
// nowhere and keeps itself within its bounds. In comes a data folder; out comes a client
// that calls it, a snapshot of all that it holds, and what it occupies. It knows nothing
// of objects: package etcd above it does.
//
//	embedded.go    start, readiness and end (lock.go: one process per folder)
//	inspect.go     reads the database file before etcd does
//	failure.go     turns damaged data and broken disks into errors
//	keeper.go      keeps etcd within bounds: ledger.go measures it, retention.go
//	               decides what to drop, raftlog.go bounds the log, defragment.go
//	               removes the file's holes
//	quota.go       admits writes
//	snapshot.go    all data as one file (restore.go: back into a data folder)
package embedded
