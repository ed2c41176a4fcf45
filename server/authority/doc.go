// Package authority answers questions about the certificate authority of the mesh, revokes its
// certificates, and drives the rotation of its root (docs/decisions/040-certificate-authority.md).
//
// In comes a step of a rotation. security/ca says whether certificates stand against it, and the
// proxies of all replicas whether they trust the new root. A step that would cut somebody off is
// refused with the names of those.
//
//	authority.go  endpoints and answers
//	missing.go    proxies that are not known to trust a root
package authority
