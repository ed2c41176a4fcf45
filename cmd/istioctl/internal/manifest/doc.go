// Package manifest reads objects from files, folders, URLs and standard input, and
// checks each on its own, as the server does. In come the flags -f and -R; out come
// manifests, which are objects with their origin, and problems with their positions. A
// verb adds its own requirements as preconditions. The package reads files and URLs,
// and asks no server.
package manifest
