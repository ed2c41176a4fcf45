// Package history has the verbs history, which shows the versions of an object, and
// rollback, which returns objects to an earlier state. In come a name or a namespace
// and a revision; out come a table, or one or more transactions that the server makes.
package history
