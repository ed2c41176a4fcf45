// Package edit has the verbs that change some fields of one object: edit, in an editor, and
// patch. They take a kind and a name, and send one write to the server. An edit runs the
// editor with the streams of the program, and keeps a refused text in a file.
package edit
