// Package diff has the verb diff. It shows the difference between two states: the stored
// objects and those that an apply would store, the configuration of proxies before and
// after an apply, or an object at two revisions. It takes files, or a name and revisions,
// and prints unified diffs on stdout. It stores nothing: it requests only dry runs.
package diff
