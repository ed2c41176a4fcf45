package wire

import "net/http"

// Handler is an HTTP handler that returns its failure to the caller. If it fails after it
// has sent the head of the answer, the connection is cut.
type Handler func(http.ResponseWriter, *http.Request) error
