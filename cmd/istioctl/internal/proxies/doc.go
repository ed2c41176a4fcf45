// Package proxies has words for what the server knows of a proxy. In comes a
// client.Proxy; out come a short name for people and a state. The package reads and
// writes nothing.
package proxies
