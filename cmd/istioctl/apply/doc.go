// Package apply has the verbs that bring the objects of files to the server: apply,
// create and replace, and delete, which also takes names and selectors. In come files
// and flags; out go writes, one for each object, or all in one transaction (--atomic,
// --owner, --prune). Nothing is sent before all files are read and checked.
package apply
