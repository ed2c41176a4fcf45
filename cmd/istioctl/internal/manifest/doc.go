// Package manifest reads objects from files, folders, URLs and standard input, and checks
// each on its own, as the server does. Callers give it the flags -f and -R. It returns
// manifests, which are objects with their origin, and problems with their positions. A verb
// adds its own requirements as preconditions. The package reads files and URLs, and sends
// requests to no pilot-api.
package manifest
