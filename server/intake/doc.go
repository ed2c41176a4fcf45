// Package intake reads the bodies of requests within the memory for writes, and decodes the
// objects in them. Large bodies wait for their turn.
//
// Callers give it a request. It returns objects and warnings, or an error that says what is
// wrong and where.
//
//	admission.go    memory for bodies and for decoding them
//	body.go         the body of a request, and the objects in it
//	decode.go       one object, checked against the URL
//	longwork.go     turns of large objects
//	outline.go      nesting and length of a JSON text before it is decoded
package intake
