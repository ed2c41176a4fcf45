package main

import (
	"context"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/gate"
	"github.com/pilot-api/pilot-api/server/proxyauth"
	"github.com/pilot-api/pilot-api/store"
)

// accessControl proves users and proxies, and decides what they may do. It follows the
// objects of the storage.
type accessControl struct {
	access
	events       *audit.Log          // nil if there is no audit log
	roles        *authz.Roles        // nil if no roles decide
	hosts        *gate.Hosts         // nil with roles
	certificates *authn.Certificates // of proxies
	prover       *proxyauth.Prover   // of proxies; nil if they need no proof
}

func newAccessControl(b *base, at *listeners, s *storage) (c *accessControl, err error) {
	c = &accessControl{}
	if c.access, err = b.newAccess(at.apiTLS, s.backend, s.others.key(), b.log, b.registry); err != nil {
		return nil, err
	}
	if c.events, err = b.access.openAudit(b.log, b.registry); err != nil {
		return nil, err
	}
	if c.events != nil {
		c.followers = append(c.followers, c.events.Run)
	}
	c.follow(s.cached)
	c.roles, c.hosts = b.followRoles(s.cached, c.known)
	c.known.all()
	if c.roles != nil {
		c.followers = append(c.followers, func(ctx context.Context) error { return keepBuiltIns(ctx, store.Strict(s.objects), b.log) })
	}
	return c, c.proveProxies(b, at, s)
}

// proveProxies sets what proves proxies, and completes the authority that signs for them.
func (c *accessControl) proveProxies(b *base, at *listeners, s *storage) (err error) {
	if c.certificates, err = authn.NewCertificates(authn.CertificateOptions{Authorities: at.proxyAuthorities, Lists: b.signing.lists(), Log: b.log}); err != nil {
		return err
	}
	if err := b.signing.keptIn(s.backend, b.options, b.log); err != nil {
		return err
	}
	if b.signing.run != nil {
		c.followers = append(c.followers, b.signing.run)
	}
	c.prover = b.access.prover(c.access, c.certificates, c.roles, b.settings.SPIFFETrustDomain())
	return nil
}
