// Package objects answers reads and writes of objects by the Kubernetes API conventions.
//
// It turns a request for a kind in a version into one call of the store, and answers with
// the result.
//
//	endpoints.go                  the endpoints of a kind
//	objects.go                    what all of them share
//	read.go, page.go              GET and LIST, pages of lists
//	encode.go                     answers with an object or a list
//	listtext.go, keptlists.go     lists in JSON, and those that many clients request
//	write.go, deleteoptions.go    POST, PUT, DELETE
//	patch.go, apply.go            patches, server-side apply
//	builtin.go                    protobuf and strategic merge patches of the kinds of Kubernetes itself
//	deletecollection.go           DELETE on a collection
//	ifmatch.go                    If-Match and If-None-Match of writes
//	laterversions.go              conditions of writes on versions that statuses gave
//	admitted.go                   memory of writes
//	warnings.go                   Warning headers of answers
//	history.go                    versions of objects, changes since a revision
//	params.go                     query parameters by verb
//
// JSON answers do not encode stored objects again: they send the bytes in the store, with
// the status appended.
package objects
