// Package get has the verbs that show objects: get, once, and watch, with every change.
// In come kinds, names and selectors; out come tables or documents on stdout. The
// package only reads from the server.
package get
