// Package root puts the commands together and runs one command line. It takes arguments and
// a cli.Program, and returns an exit code. It also has the verbs version and completion,
// which are about the program itself. Only the program imports this package.
package root
