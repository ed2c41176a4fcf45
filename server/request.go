package server

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

// withID returns a copy of r that has an id. All other functions of this file are for such
// requests.
func withID(r *http.Request, id string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), requestNotesKey{}, &requestNotes{id: id}))
}

// requestID returns the id of a request.
func requestID(r *http.Request) string { return notesOf(r).id }

// setQuery keeps the query of a request, so that it is parsed once.
func setQuery(r *http.Request, query url.Values) { notesOf(r).query = query }

// queryOf returns the query that setQuery keeps. Do not change it.
func queryOf(r *http.Request) url.Values { return notesOf(r).query }

// isRead reports whether a request only reads.
func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// registryVersion is the apiVersion of what is about several objects or about proxies.
const registryVersion = "registry.istio.io/v1"

// mostLogged bounds each text of a request in a line of the log, in bytes.
const mostLogged = 1 << 10
