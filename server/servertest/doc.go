// Package servertest starts servers for tests of whole requests, and has what several of
// these tests use. It imports package server, so the packages below server use it only in
// external tests.
//
//	world.go        a server over a store in memory, and requests to it
//	openapi.go      compares each answer with the OpenAPI documents
//	objects.go      objects, lists and patches
//	transaction.go  Transactions and Rollbacks
//	watch.go        watches, and what they deliver
//	replicas.go     several servers that share a store
//	status.go       proxies, and the status of objects
package servertest
