// Package past reads the history of an object. Callers give it the key of the object and a
// revision. It returns the versions of the object, entries that say who changed which
// fields, and states without the fields that each write sets. The package reads from the
// server, and changes nothing.
package past
