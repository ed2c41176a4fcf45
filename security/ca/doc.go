// Package ca is the certificate authority of the mesh. It signs the certificates by which
// workloads prove their identity to each other.
//
// It receives a request for a certificate in PEM, with the proven identity of the sender.
// It returns a chain of certificates, or a Refusal with the reason. The package knows no
// gRPC and no store: the authority comes from files or from a Document.
//
//	ca.go         CA: signs by the authority in use, and counts
//	request.go    requests, and what is wrong with them
//	trust.go      Trust: the roots, and the issuer that signs
//	files.go      an authority in files
//	shared.go     an authority that servers make and share
//	rotation.go   the rotation of its root, step by step
//	revocation.go revoked certificates, and the lists of them
//	serial.go     serial numbers, which an authority knows as its own
//	sealed.go     keys that are stored encrypted
//	metrics.go    counts of requests, and the end of the issuer
package ca
