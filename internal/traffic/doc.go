// Package traffic has the tests of what becomes of requests and connections: each test
// compiles objects, runs a real Envoy with the result, sends requests through it, and looks
// at the answers. Tests of how package envoy spells a configuration are beside that package.
package traffic
