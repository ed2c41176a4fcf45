package wire

import (
	"io"
	"net/http"
)

// WriteText answers with a plain text for people.
func WriteText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // A client that went away needs no answer.
}
