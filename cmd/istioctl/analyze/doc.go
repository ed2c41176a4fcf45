// Package analyze has the verbs that report what is wrong: problems, of the objects on
// the server; analyze, also of files, by themselves or over the server's objects; and
// validate, which checks each object of files on its own. Out come problems with their
// positions, and exit codes for scripts. Nothing is stored.
package analyze
