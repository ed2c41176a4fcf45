// Package edit has the verbs that change some fields of one object: edit, in an editor,
// and patch. In come a kind and a name; out goes one write to the server. An edit runs
// the editor with the streams of the program, and keeps a text that was refused in a
// file.
package edit
