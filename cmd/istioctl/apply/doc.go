// Package apply has the verbs that send the objects of files to the server: apply, create
// and replace, and delete, which also takes names and selectors. They send one write for
// each object, or all writes in one transaction (--atomic, --owner, --prune). They send
// nothing before all files are read and checked.
package apply
