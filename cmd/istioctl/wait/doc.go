// Package wait has the verb wait, and waits for apply --wait. It takes the keys of objects
// and a condition. It prints a line for each object that meets the condition. If an object
// cannot meet it, or not in time, it prints the reason. The package only reads from the
// server.
package wait
