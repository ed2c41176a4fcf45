// Package get has the verbs that show objects: get, once, and watch, with every change.
// They take kinds, names and selectors, and print tables or documents on stdout. The
// package only reads from the server.
package get
