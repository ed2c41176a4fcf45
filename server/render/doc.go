// Package render shows stored objects in answers: in a version of their kind, with their
// status, as rows of a table or as metadata alone, and only those that a client selects.
//
// Callers give it objects of the store and their statuses. It returns their JSON and
// tables. It reads no store.
//
//	resource.go     a kind in a version, and its URLs
//	selection.go    label and field selectors
//	status.go       objects with their status
//	frames.go       cache of objects with their status, for watches
//	table.go        tables for kubectl
//	metadata.go     objects that are reduced to their metadata
//	items.go        the items of a list, one by one
package render
