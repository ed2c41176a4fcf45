// Package export has the verb export. It reads the objects of one namespace or of all, at
// one revision, and writes files that apply accepts. The package writes to stdout, to one
// file, or inside one folder, where it also deletes the files of deleted objects.
package export
