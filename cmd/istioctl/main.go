// Program istioctl is the command line of a pilot-api server. It reads config objects
// from files, checks them with the same engine as the server, and stores, shows,
// follows and deletes them.
package main

import (
	"os"

	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/internal/release"
)

// version is set at the build: -ldflags "-X main.version=…".
var version = release.Version

func main() {
	os.Exit(root.Main(version, os.Args[1:]))
}
