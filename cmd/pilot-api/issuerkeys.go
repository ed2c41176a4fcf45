package main

import (
	"time"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/security/jwks"
)

// issuerKeys provides discovery with the public keys of issuers.
type issuerKeys struct{ *jwks.Fetcher }

func (k issuerKeys) Want(sources map[mesh.KeySource]time.Duration) {
	wanted := make(map[jwks.Source]time.Duration, len(sources))
	for source, patience := range sources {
		wanted[jwks.Source(source)] = patience
	}
	k.Fetcher.Want(wanted)
}

func (k issuerKeys) Keys() *mesh.KeySets {
	all := map[mesh.KeySource]mesh.KeySet{}
	for source, state := range k.States() {
		all[mesh.KeySource(source)] = mesh.KeySet(state)
	}
	return mesh.NewKeySets(all)
}
