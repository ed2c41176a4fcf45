package main

import (
	"crypto/tls"
	"fmt"
	"sync"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/credential/rotation"
)

// streamFiles names the files for streams among all followed files.
const streamFiles = "--grpc-tls-cert"

// streamTLS returns the TLS configuration of the listener for streams, nil for plain
// text. New connections use the newest files. Open connections stay as they are.
func (o *options) streamTLS(files *rotation.Follower) (*tls.Config, error) {
	if o.grpcTLS.CertificateFile == "" {
		return nil, nil
	}
	if s := files.State(streamFiles); s.Pair == (credential.Pair{}) {
		return nil, fmt.Errorf("--grpc-tls-cert, --grpc-tls-key and --grpc-client-ca: %s", s.Problem)
	}
	end := &streamEnd{files: files}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return end.config() },
	}, nil
}

// streamEnd makes TLS configurations from the newest files.
type streamEnd struct {
	files *rotation.Follower

	mu   sync.Mutex
	pair credential.Pair
	made *tls.Config // of pair
}

func (e *streamEnd) config() (*tls.Config, error) {
	pair := e.files.State(streamFiles).Pair
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made != nil && pair == e.pair {
		return e.made, nil
	}
	shown, err := pair.Shown()
	if err != nil {
		return nil, err
	}
	made := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{shown}}
	if pair.CACertificates != "" {
		made.ClientAuth, made.ClientCAs = tls.RequireAndVerifyClientCert, pair.Authorities()
	}
	e.pair, e.made = pair, made
	return made, nil
}
