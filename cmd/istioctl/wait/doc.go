// Package wait has the verb wait, and waits for apply --wait. In come the keys of
// objects and a condition; out comes a line for each object that has the condition, or
// the reason why one cannot have it or does not have it in time. The package only reads
// from the server.
package wait
