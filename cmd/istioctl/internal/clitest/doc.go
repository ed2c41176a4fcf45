// Package clitest runs command lines of istioctl against servers in memory, for tests.
// Tests give it arguments and standard input. It returns stdout, stderr and the exit code,
// or a screen that grows. Only tests import it.
package clitest
