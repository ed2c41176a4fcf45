package main

import (
	"context"
	"sync"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/ca"
)

// meshInputs provides discovery with what is neither object nor setting: the secrets from
// files, and the roots of the certificate authority of the mesh.
type meshInputs struct {
	secretFiles
	signing *ca.CA // nil for none

	mu      sync.Mutex
	changed chan struct{}
}

func newMeshInputs(files secretFiles, signing *ca.CA) *meshInputs {
	return &meshInputs{secretFiles: files, signing: signing, changed: make(chan struct{})}
}

// Secrets returns the present inputs.
func (i *meshInputs) Secrets() *mesh.FileSecrets {
	files := i.secretFiles.Secrets()
	if i.signing == nil {
		return files
	}
	trust, _ := i.signing.Trust()
	return files.WithRoots(rootsOf(trust))
}

// rootsOf returns the roots of a trust, which may be nil.
func rootsOf(trust *ca.Trust) mesh.Roots {
	if trust == nil {
		return mesh.Roots{}
	}
	return mesh.Roots{Certificates: trust.RootsPEM(), Names: trust.RootNames(), Revoked: trust.ListsPEM, Revocations: trust.Revocations, Lack: trust.Lack}
}

// Changed returns a channel that is closed at the next change after the call.
func (i *meshInputs) Changed() <-chan struct{} {
	if i.signing == nil {
		return i.secretFiles.Changed()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changed
}

// run makes one channel of those of the files and of the authority, until ctx ends.
func (i *meshInputs) run(ctx context.Context) error {
	if i.signing == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	for {
		files := i.secretFiles.Changed()
		_, roots := i.signing.Trust()
		// A change before these two was perhaps not seen by those who have the old channel.
		i.mu.Lock()
		close(i.changed)
		i.changed = make(chan struct{})
		i.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-files:
		case <-roots:
		}
	}
}

// rootsFirst has no objects before the roots of the mesh are known. Otherwise a server that
// starts would tell proxies that nobody can be verified.
type rootsFirst struct {
	discovery.Source
	signing *ca.CA // nil for none
}

// Snapshot implements discovery.Source.
func (r rootsFirst) Snapshot() (objs []*schema.Object, revision int64, ok bool) {
	if r.signing != nil {
		if trust, _ := r.signing.Trust(); trust == nil {
			return nil, 0, false
		}
	}
	return r.Source.Snapshot()
}
