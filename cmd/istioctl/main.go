// Program istioctl is the command line of a pilot-api server. It reads config objects
// from files, checks them with the same engine as the server, and stores, shows,
// follows and deletes them.
//
// Each verb has one file. The verbs share: cli.go (streams, flags, exit codes),
// input.go (from a -f argument to text), manifest.go (from text to checked objects),
// preconditions.go (what else a verb requires of its objects), writes.go (sends objects
// to the server, one by one, with a line each), args.go (kinds and names), and
// output.go with its printers.
package main

import "os"

func main() {
	os.Exit(process().Main(os.Args[1:]))
}
