// Program istioctl is the command line of a pilot-api server: it reads config
// objects from files, checks them with the server's very engine, stores,
// shows, follows and deletes them.
//
// One file per verb. What the verbs share: cli.go (streams, flags, exit
// codes), input.go (from a -f argument to text), manifest.go (from text to
// checked objects), preconditions.go (what a verb asks of them beside), writes.go
// (objects to the server, one by one, with a line each), args.go (kinds and
// names), output.go and its printers.
package main

import "os"

func main() {
	os.Exit(process().Main(os.Args[1:]))
}
