// Package export has the verb export. In come the objects of a namespace or of all, as
// of one revision; out come files that apply accepts. The package writes to stdout, to
// one file, or inside one folder, where it also deletes files of objects that are gone.
package export
