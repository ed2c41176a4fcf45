// Package contexts reads and writes the config file of istioctl: named servers, each with a
// namespace and credentials. The environment names the file. The package returns contexts,
// and credentials for the client of a server. It sends requests to no server.
package contexts
