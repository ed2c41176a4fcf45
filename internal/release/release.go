// Package release names the release that this tree is, or becomes.
package release

// Version is what a program says of itself when nothing else was said at its
// build. CHANGELOG.md begins with it.
const Version = "v0.1.0"
