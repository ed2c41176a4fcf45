package wire

import (
	"context"
	"net/http"
	"net/url"
)

// requestNotes holds what the server records about a request.
type requestNotes struct {
	id    string
	query url.Values
}

type requestNotesKey struct{}

func notesOf(r *http.Request) *requestNotes {
	return r.Context().Value(requestNotesKey{}).(*requestNotes)
}

// WithID returns a copy of r that has an id. All other functions of this file are for such
// requests.
func WithID(r *http.Request, id string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), requestNotesKey{}, &requestNotes{id: id}))
}

// RequestID returns the id of a request.
func RequestID(r *http.Request) string { return notesOf(r).id }

// SetQuery keeps the query of a request, so that it is parsed once.
func SetQuery(r *http.Request, query url.Values) { notesOf(r).query = query }

// Query returns the query that SetQuery keeps. Do not change it.
func Query(r *http.Request) url.Values { return notesOf(r).query }

// IsRead reports whether a request only reads.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
