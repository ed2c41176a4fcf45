// Package history has the verbs history, which shows the versions of an object, and
// rollback, which returns objects to an earlier state. They take a name, or a namespace and
// a revision. The first prints a table; the second requests one or more transactions from
// the server.
package history
