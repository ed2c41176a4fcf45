// Package wire reads requests and writes answers as all paths of the server do: media
// types, parameters of the path and of the query, YAML, and failures as Status objects.
// It knows nothing of objects and of the store.
package wire
