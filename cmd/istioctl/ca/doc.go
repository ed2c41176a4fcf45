// Package ca has the verb ca, which shows the certificate authority of the mesh and rotates its
// root. The server decides which step is possible; the package only asks and shows.
package ca
