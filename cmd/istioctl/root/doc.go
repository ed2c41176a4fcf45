// Package root puts the commands together and runs one command line. In come arguments
// and a cli.Program; out comes an exit code. The verbs version and completion, which
// are about the program itself, are here too. Nothing imports this package but the
// program.
package root
