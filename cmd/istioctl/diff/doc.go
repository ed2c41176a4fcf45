// Package diff has the verb diff. It shows the difference between two states: the
// stored objects and those that an apply would store, the configuration of proxies now
// and then, or an object at two revisions. In come files, or a name and revisions; out
// come unified diffs on stdout. Nothing is stored: the server is asked for dry runs.
package diff
