// Package clitest runs command lines of istioctl against servers in memory, for tests. In
// come arguments and standard input; out come stdout, stderr and the exit code, or a
// screen that grows. It is imported by tests only.
package clitest
