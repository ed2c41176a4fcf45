package wire

import "net/http"

// Handler is an HTTP handler that returns its failure to the caller. A failure after the
// head of the answer was sent cuts the connection.
type Handler func(http.ResponseWriter, *http.Request) error
