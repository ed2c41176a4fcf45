// Package watch answers watches of objects.
//
// It turns a request for a watch, and batches of changes from the store, into a stream of
// events. When the stream ends, its client can resume it.
//
//	watch.go, kinds.go    the request of a watch, of one kind or of several
//	stream.go             the stream of events
//	changes.go            changes that a stream reads
//	writeslots.go         slots to write
//	events.go             encoding of events
//	initialevents.go      sendInitialEvents
//	statusevents.go       events for changed statuses
//	serversent.go         server-sent events, for browsers
//	permits.go            bound on watches, by client
package watch
