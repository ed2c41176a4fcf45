// Package release names the release that this tree is or becomes.
package release

// Version is the version of programs whose build set none. CHANGELOG.md begins with it.
const Version = "v0.1.0"
