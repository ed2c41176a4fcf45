// Package fields has the verb explain: the meaning of kinds and their fields, from the
// schemas that are used to check objects. It asks no server and reads no files.
package fields
