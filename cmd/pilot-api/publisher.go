package main

import (
	"context"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/store/etcd/roster"
)

// publisher compiles the objects of the storage for the known proxies.
type publisher struct {
	*discovery.Publisher
	known  *inventory
	since  int64 // the revision at which known was loaded
	inputs *meshInputs
	served *settingsMemory // the settings of this start and earlier ones
}

func newPublisher(ctx context.Context, b *base, s *storage) *publisher {
	alone := s.embedded != nil
	p := &publisher{
		inputs: newMeshInputs(secretFiles{b.certificates, b.settings.SecretFiles}, b.signing.CA),
		known:  newInventory(roster.New(s.client, b.etcdPrefix, b.keepDisconnected, b.log), s.others, alone, b.log),
		served: b.rememberSettings(b.settings.PrivateFolders, b.log),
	}
	p.Publisher = discovery.New(discovery.Options{
		Source:       rootsFirst{s.cached, b.signing.CA},
		CatchUp:      s.cached.CatchUp,
		LeftOut:      leftOut(s.cached),
		Settings:     b.settings,
		Files:        p.inputs,
		Keys:         issuerKeys{b.keys},
		PastSettings: p.served.past(),
		MaxResults:   maxResults(availableMemory()),
		EnterLarge:   b.long.EnterOwing,
		AbsentFor:    b.keepDisconnected,
		Alone:        alone,
		Others:       p.known,
		Log:          b.log,
		Registry:     b.registry,
	})
	p.since = p.known.load(ctx, p.Publisher)
	return p
}

// tasks publish what changes and record what was published.
func (p *publisher) tasks() []task {
	return []task{
		p.Run, p.inputs.run,
		func(ctx context.Context) error { return p.known.run(ctx, p.since) },
		func(ctx context.Context) error { return p.served.run(ctx, p.Ready) },
	}
}
