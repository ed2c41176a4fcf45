// Package answer writes the answers of all endpoints: as JSON or YAML, compressed if the
// client accepts that, and within limits that leave time and memory to others.
//
// Callers give it a value, or a function that writes one. It sends an HTTP answer, or an
// error if the server is at a limit.
//
//	encode.go        values as JSON and YAML
//	compress.go      answers in gzip
//	pacing.go        turns to encode and compress large answers
//	largereads.go    reads whose length is known only afterwards
//	unread.go        answers that clients do not read
//	etag.go          ETags, and 304
package answer
