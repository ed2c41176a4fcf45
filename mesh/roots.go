package mesh

// Roots are what all workloads of the mesh verify each other by, from the certificate
// authority of the mesh. The zero value has none. Values that are equal by == have the same
// content.
type Roots struct {
	// Certificates are the authorities that workloads trust, in PEM.
	Certificates string
	// Names are the names of these authorities, with commas.
	Names string
	// Revoked are the lists of revoked certificates of these authorities, in PEM; "" for none.
	// If there are some, each issuer of certificates of workloads has one.
	Revoked string
	// Revocations counts the times at which certificates were revoked. When it grows, proxies
	// end the connections that they have.
	Revocations int64
	// Lack says why this server signs no certificates by them; "" if it does, or has none.
	Lack string
}
