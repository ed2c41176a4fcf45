// Package analyze has the verbs that report problems. The verb problems reports those of
// the objects on the server. The verb analyze also reports those of files, by themselves or
// laid over the server's objects. The verb validate checks each object of files on its own.
// They print problems with their positions, return exit codes for scripts, and store
// nothing.
package analyze
