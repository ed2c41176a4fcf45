// Package cached keeps values that are made once and shared: Attached ones live as long
// as what they were made of, Lazy ones as long as their owner, Brief ones until the next
// garbage collection, and a Memo keeps a bounded number by key. Nothing in it has to be
// cleared. The package knows nothing of discovery.
package cached
