// Package wire has the elements of requests and answers that all endpoints share: media
// types, parameters of the path and of the query, YAML, Warning headers, and failures as
// Status objects. It calls no store.
package wire
