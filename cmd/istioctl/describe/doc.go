// Package describe has the verb describe. It takes one object, of a server or of files, and
// prints its fields, status, references, problems, changes and proxies, as text for people
// or as a document. The package only reads.
package describe
