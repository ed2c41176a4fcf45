// Package describe has the verb describe. In comes one object, of a server or of files;
// out come its fields, status, references, problems, changes and proxies, as text for
// people or as a document. The package only reads.
package describe
