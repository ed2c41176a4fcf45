// Package contexts has the config file of istioctl: named servers, each with a
// namespace and credentials. In comes the environment, which says where the file is;
// out come contexts, the changed file, and credentials for the client of a server. The
// package reads and writes files. It asks no server.
package contexts
