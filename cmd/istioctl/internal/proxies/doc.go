// Package proxies describes a proxy in words. Callers give it a client.Proxy. It returns a
// short name for people and a state. The package reads and writes nothing.
package proxies
