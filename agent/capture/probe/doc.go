// Package probe makes connections to see whether they are captured, and says what is wrong
// and what to do.
//
//	result.go     results of trials
//	installed.go  the rules that are there, compared with the settings
//	connect.go    trials by real connections
//	sender*.go    connections of other users
//
// Each call makes a few connections, waits for each at most for the given time, and closes
// them. Calls may be concurrent, but those of one machine disturb each other.
package probe
