// Package embedded runs an etcd inside this process: a cluster of one, which listens
// nowhere and keeps itself within its bounds. Callers give it a data folder. It returns a
// client that calls the etcd, a snapshot of all its data, and the space that the data uses.
// It knows nothing about objects: package etcd above it does.
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
