// Package reach has the verb reach, which shows who can reach whom. The answer comes from the server,
// or is computed from files. The package changes nothing.
package reach
