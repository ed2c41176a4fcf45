package main

import (
	"fmt"
	"log/slog"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/security/jwks"
	"github.com/pilot-api/pilot-api/server/admission"
)

// base is what all steps of the start share.
type base struct {
	*options
	settings     *mesh.Settings
	log          *slog.Logger
	registry     *prometheus.Registry
	long         *admission.Long // turns of long work, of writes and of publications
	certificates *rotation.Follower
	keys         *jwks.Fetcher // of issuers that objects name
	signing      authority
}

// newBase reads the files of the options and applies the limits of the process.
func newBase(o *options, log *slog.Logger) (*base, error) {
	settings, err := o.settings(log)
	if err != nil {
		return nil, err
	}
	o.limits.apply(log)
	settings.Budget = settings.Budget.Or(budget())
	b := &base{
		options: o, settings: settings, log: log, registry: prometheus.NewRegistry(),
		long: admission.NewLong(runtime.GOMAXPROCS(0)), certificates: rotation.New(o.certificateFiles(settings), log),
	}
	b.keys, err = jwks.New(jwks.Options{Addresses: settings.JWKSFetching.Addresses, CAFile: settings.JWKSFetching.CAFile, Log: log})
	if err != nil {
		return nil, fmt.Errorf("jwksFetching of the mesh settings: %w", err)
	}
	b.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerCertificateMetrics(b.registry, b.certificates)
	b.signing, err = o.newAuthority(settings.SPIFFETrustDomain(), b.certificates, log, b.registry)
	return b, err
}

func versionInfo() apiversion.Info {
	return apiversion.Info{
		GitVersion: version,
		GitCommit:  commit,
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
}
