package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/server"
)

// listeners are the open listeners of the server, and their TLS.
type listeners struct {
	api, discovery, streams         net.Listener // the last two may be nil
	apiTLS, discoveryTLS, streamTLS *tlsEnd      // nil for plain text
	// proxies has the authorities of proxies; nil if no proxy can show a certificate.
	proxies *tlsEnd
	// local are for proxies of this machine. They are opened after the store.
	local localSockets
}

// listenAll opens the listeners of the flags. Proxies may show certificates of the authority of
// the mesh.
func (o *options) listenAll(files *rotation.Follower, mesh authority) (*listeners, error) {
	at := &listeners{}
	if err := at.open(o, files, mesh); err != nil {
		at.close()
		return nil, err
	}
	return at, nil
}

func (at *listeners) open(o *options, files *rotation.Follower, mesh authority) (err error) {
	for _, l := range []struct {
		flag, address string
		into          *net.Listener
	}{{"--listen", o.listen, &at.api}, {"--discovery-listen", o.discoveryListen, &at.discovery}, {"--grpc-listen", o.grpcListen, &at.streams}} {
		if l.address == "" {
			continue
		}
		if *l.into, err = listen(l.flag, l.address); err != nil {
			return err
		}
	}
	if o.access.tls.CertificateFile != "" {
		// A client without a certificate may have another proof.
		at.apiTLS, err = newTLSEnd(files, apiFiles, "--tls-cert, --tls-key and --client-ca", tls.VerifyClientCertIfGiven, "http/1.1")
		if err != nil {
			return err
		}
	}
	at.discoveryTLS = at.apiTLS
	if o.pollsByCertificate() {
		at.proxies, err = newTLSEnd(files, discoveryFiles, "--tls-cert, --tls-key and --grpc-client-ca", o.pollClients(), "http/1.1")
		if err != nil {
			return err
		}
		at.proxies.mesh = mesh.CA
		if at.discovery != nil {
			at.discoveryTLS = at.proxies
		}
	}
	if at.streams != nil && o.streamFiles().CertificateFile != "" {
		at.streamTLS, err = newTLSEnd(files, streamFiles, "--grpc-tls-cert, --grpc-tls-key and --grpc-client-ca", o.streamClients(), "h2")
		if err != nil {
			return err
		}
		at.streamTLS.mesh = mesh.CA
		if o.grpcTLS.CAFile != "" || mesh.CA != nil {
			at.proxies = at.streamTLS
		}
	}
	return nil
}

// streamConfig returns the TLS of streams, nil for plain text.
func (at *listeners) streamConfig() *tls.Config {
	if at.streamTLS == nil {
		return nil
	}
	return at.streamTLS.config()
}

// proxyAuthorities returns the authorities of proxies in use, nil if there are none.
func (at *listeners) proxyAuthorities() *x509.CertPool {
	if at.proxies == nil {
		return nil
	}
	return at.proxies.authorities()
}

func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s %s: %w: end what listens there, or give this one another port", flag, address, syscall.EADDRINUSE)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}

// listeners returns the listeners of the HTTP server. private are for Envoys of this
// machine.
func (at *listeners) listeners(private []net.Listener) server.Listeners {
	out := server.Listeners{API: at.api, Discovery: at.discovery, Private: private}
	if at.apiTLS != nil {
		out.API = tls.NewListener(at.api, at.apiTLS.config())
		if at.discovery != nil {
			out.Discovery = tls.NewListener(at.discovery, at.discoveryTLS.config())
		}
	}
	return out
}

// close closes the listeners. Those that were served are closed already.
func (at *listeners) close() {
	for _, l := range []net.Listener{at.api, at.discovery, at.streams} {
		if l != nil {
			l.Close()
		}
	}
}
