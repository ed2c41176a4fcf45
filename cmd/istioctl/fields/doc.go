// Package fields has the verb explain: the meaning of kinds and their fields, from the
// schemas that check objects. It asks no server and reads no files.
package fields
