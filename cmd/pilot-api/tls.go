package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/security/ca"
)

// The names of the files of the listeners among all followed files.
const (
	apiFiles       = "--tls-cert"
	streamFiles    = "--grpc-tls-cert"
	discoveryFiles = "--discovery-listen"
)

// tlsEnd is the TLS of a listener, from files that are followed. New connections use the
// newest files. Open connections stay, and what serves them asks whether the certificates of
// their clients still count (authn.Certificates).
type tlsEnd struct {
	files     *rotation.Follower
	name      string
	protocols []string
	// clients says what is asked of clients if there are authorities.
	clients tls.ClientAuthType
	// mesh is the authority of the mesh, whose certificates clients may show too; nil for none.
	mesh *ca.CA

	mu    sync.Mutex
	pair  credential.Pair
	trust *ca.Trust
	made  *tls.Config // of pair and trust
}

// newTLSEnd returns the TLS of the files with a name. flags are the flags of the files.
func newTLSEnd(files *rotation.Follower, name, flags string, clients tls.ClientAuthType, protocols ...string) (*tlsEnd, error) {
	if s := files.State(name); s.Pair == (credential.Pair{}) {
		return nil, fmt.Errorf("%s: %s", flags, s.Problem)
	}
	return &tlsEnd{files: files, name: name, clients: clients, protocols: protocols}, nil
}

// config returns the configuration of a listener.
func (e *tlsEnd) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: e.protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return e.current() },
	}
}

// authorities returns the authorities of clients in use: the same pool as long as the files
// do not change.
func (e *tlsEnd) authorities() *x509.CertPool {
	made, err := e.current()
	if err != nil {
		return nil
	}
	return made.ClientCAs
}

// current returns the configuration for the newest files.
func (e *tlsEnd) current() (*tls.Config, error) {
	pair := e.files.State(e.name).Pair
	var trust *ca.Trust
	if e.mesh != nil {
		trust, _ = e.mesh.Trust()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made != nil && pair == e.pair && trust == e.trust {
		return e.made, nil
	}
	shown, err := pair.Shown()
	if err != nil {
		return nil, err
	}
	made := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: e.protocols, Certificates: []tls.Certificate{shown}}
	if pair.CACertificates != "" || e.mesh != nil {
		// A resumed session would keep a certificate that other authorities verified.
		made.ClientAuth, made.ClientCAs, made.SessionTicketsDisabled = e.clients, pair.Authorities(), true
	}
	if trust != nil {
		for _, root := range trust.Roots {
			made.ClientCAs.AddCert(root)
		}
	}
	e.pair, e.trust, e.made = pair, trust, made
	return made, nil
}
