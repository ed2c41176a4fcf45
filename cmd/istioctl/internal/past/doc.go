// Package past knows what was. In come an object's key and a revision; out come the
// versions of the object, entries that say who changed which fields, and states without
// the fields that each write sets. The package reads from the server, and changes
// nothing.
package past
