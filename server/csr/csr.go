// Package csr serves Istio's protocol by which workloads get certificates:
// istio.v1.auth.IstioCertificateService over gRPC.
//
// It receives a request for a certificate with the credentials of the sender. Package
// proxyauth verifies the sender, package ca signs the certificate, and the audit log has a
// line before the certificate leaves (docs/decisions/040-certificate-authority.md).
package csr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	security "istio.io/api/security/v1alpha1"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/ca"
	"github.com/pilot-api/pilot-api/server/proxyauth"
)

// Options configure a Server. Prover, CA and Exists are required.
type Options struct {
	Prover *proxyauth.Prover
	CA     *ca.CA
	// Exists reports whether a ServiceAccount exists. A certificate is not renewed after
	// its account is deleted.
	Exists func(namespace, name string) bool
	Audit  *audit.Log // nil for none
	Log    *slog.Logger
}

// Server answers requests for certificates. It is safe for concurrent use.
type Server struct {
	security.UnimplementedIstioCertificateServiceServer

	opts Options
}

// New returns a Server.
func New(opts Options) *Server { return &Server{opts: opts} }

// Register adds the service to a gRPC server.
func (s *Server) Register(to grpc.ServiceRegistrar) {
	security.RegisterIstioCertificateServiceServer(to, s)
}

// impersonation is the metadata with which a node asks for the certificate of a workload on it.
const impersonation = "ImpersonatedIdentity"

// mostSeconds is the longest time that a request can ask for; security/ca bounds it further.
const mostSeconds = int64(100 * 365 * 24 * time.Hour / time.Second)

// CreateCertificate signs a certificate for the workload that the sender proves to be.
func (s *Server) CreateCertificate(ctx context.Context, r *security.IstioCertificateRequest) (*security.IstioCertificateResponse, error) {
	proof, err := s.opts.Prover.Prove(proxyauth.CredentialsOf(ctx))
	switch {
	case errors.Is(err, proxyauth.ErrUndecided):
		return nil, status.Error(codes.Unavailable, err.Error())
	case err != nil:
		return nil, status.Errorf(codes.Unauthenticated, "the sender of the request for a certificate does not prove a ServiceAccount: %v", err)
	}
	issued, err := s.sign(ctx, proof, r)
	if err := s.record(ctx, proof, issued, err); err != nil {
		s.opts.Log.Error("a certificate was not issued, because the audit log cannot be written", "error", err)
		return nil, status.Error(codes.Unavailable, "the certificate is not issued: the audit log of the server cannot be written")
	}
	if err != nil {
		return nil, statusOf(err)
	}
	return &security.IstioCertificateResponse{CertChain: issued.PEM()}, nil
}

func (s *Server) sign(ctx context.Context, proof proxyauth.Proof, r *security.IstioCertificateRequest) (*ca.Issued, error) {
	if !s.opts.Exists(proof.Namespace, proof.Account) {
		return nil, errGone
	}
	if r.GetMetadata().GetFields()[impersonation] != nil {
		return nil, &ca.Refusal{Reason: "a certificate is for its sender: this server takes no " + impersonation}
	}
	seconds := r.GetValidityDuration()
	if seconds < 0 || seconds > mostSeconds {
		return nil, &ca.Refusal{Reason: fmt.Sprintf("validity_duration %d: must be a number of seconds, and 0 for the default", seconds)}
	}
	return s.opts.CA.Sign(ctx, r.GetCsr(), ca.Account{Namespace: proof.Namespace, Name: proof.Account}, time.Duration(seconds)*time.Second)
}

// errGone means that there is no account for the proof of the sender.
var errGone = errors.New("the ServiceAccount of the certificate is gone")

// statusOf returns the status for an error of the CA.
func statusOf(err error) error {
	var refusal *ca.Refusal
	switch {
	case errors.As(err, &refusal):
		return status.Error(codes.InvalidArgument, refusal.Reason)
	case errors.Is(err, errGone):
		return status.Error(codes.PermissionDenied, err.Error())
	case errors.Is(err, ca.ErrTooMany):
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return status.Error(codes.Unavailable, err.Error())
}

// record writes down that a certificate was issued or refused. The error is that of a strict
// log; others lose the line and count it.
func (s *Server) record(ctx context.Context, proof proxyauth.Proof, issued *ca.Issued, refused error) error {
	if s.opts.Audit == nil {
		return nil
	}
	e := &audit.Event{
		Time: time.Now().UTC(), Stage: audit.StageComplete, Verb: "create", Resource: "certificates",
		Namespace: proof.Namespace, Name: proof.Account, Path: security.IstioCertificateService_CreateCertificate_FullMethodName,
	}
	e.SetIdentity(proof.Identity())
	if p, _ := peer.FromContext(ctx); p != nil {
		e.Source, _, _ = net.SplitHostPort(p.Addr.String())
	}
	if refused != nil {
		e.Decide(false, refused.Error())
	} else {
		e.Decide(true, fmt.Sprintf("signed by %s until %s", ca.Name(issued.Issuer), issued.Leaf().NotAfter.UTC().Format(time.RFC3339)))
		e.AddChange(audit.Change{Object: "Certificate " + issued.Leaf().URIs[0].String(), After: issued.Serial()})
	}
	err := s.opts.Audit.Write(ctx, e)
	if s.opts.Audit.IsStrict() {
		return err
	}
	return nil
}
