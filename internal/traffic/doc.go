// Package traffic tests the effect of objects on requests and connections. Each test
// compiles objects, runs a real Envoy with the result, sends requests through it, and
// checks the answers. Tests of the encoding in package envoy are beside that package.
package traffic
