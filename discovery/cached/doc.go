// Package cached keeps values that are made once and shared. An Attached value lives as
// long as the part that it was made from, a Lazy one as long as its owner, and a Brief one
// until the next garbage collection. A Memo keeps a bounded number of values by key.
// Nothing in the package has to be cleared. The package does not depend on discovery.
package cached
