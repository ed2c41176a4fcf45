package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/register"
)

// Values of --status-revisions. Without one, the server does as the store says.
const (
	statusesOn  = "on"
	statusesOff = "off"
)

func (o *options) validateStatuses() error {
	switch o.statusRevisions {
	case "", statusesOn, statusesOff:
		return nil
	}
	return fmt.Errorf("%w: --status-revisions %q: must be %s or %s, or left out to do as the store says", errUsage, o.statusRevisions, statusesOn, statusesOff)
}

// settlePause is the delay before etcd is asked again.
const settlePause = time.Second

// settleStatuses makes the store keep statuses, or not, as the flag says. That holds for all
// replicas, which follow the store. So it fails if there are others and the store does
// otherwise.
func settleStatuses(ctx context.Context, o options, objects *etcd.Store, peers replica.Peers, log *slog.Logger) error {
	if o.statusRevisions == "" {
		return nil
	}
	keep, said := o.statusRevisions == statusesOn, ""
	for {
		kept, err := objects.KeepsStatuses(ctx)
		if err == nil && kept == keep {
			return nil
		}
		var others []replica.Replica
		if err == nil {
			others, err = peers.Others(ctx)
		}
		for _, one := range others {
			if one.Missing.IsZero() {
				return fmt.Errorf("--status-revisions %s: the replica %s runs on the same store, which has them %s: leave the flag out to do as the store says, or stop the other replicas first",
					o.statusRevisions, one.Name, map[bool]string{true: statusesOn, false: statusesOff}[kept])
			}
		}
		if err == nil {
			err = objects.KeepStatuses(ctx, keep)
		}
		if err == nil {
			return nil
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			said = text
			log.Warn("--status-revisions has no effect yet; trying until it has", "error", store.Logged(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settlePause):
		}
	}
}

// statusKeeper lets this server write the statuses of its store, or wait until it may.
type statusKeeper struct {
	objects *etcd.Store
	cached  *cache.Cache
	backend backend
	prefix  string
	self    func() string
}

// Lead implements status.Keeper.
func (k statusKeeper) Lead(ctx context.Context) (status.Writer, error) {
	for !k.cached.ShowsStatuses() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(settlePause):
		}
	}
	if k.backend.embedded != nil {
		to, err := k.objects.StatusWriter(ctx)
		return soleStatusWriter{to}, err
	}
	lead, err := register.Lead(ctx, k.backend.client, k.prefix, "statuses", k.self())
	if err != nil {
		return nil, err
	}
	to, err := k.objects.StatusWriter(ctx, lead.Holds())
	if err != nil {
		lead.Resign()
		return nil, err
	}
	return leadingStatusWriter{to, lead}, nil
}

// soleStatusWriter is that of a server that shares its store with no other.
type soleStatusWriter struct{ *etcd.StatusWriter }

func (soleStatusWriter) Lost() <-chan struct{} { return nil }
func (soleStatusWriter) Close()                {}

// leadingStatusWriter is that of one of several replicas.
type leadingStatusWriter struct {
	*etcd.StatusWriter
	lead *register.Leadership
}

func (w leadingStatusWriter) Lost() <-chan struct{} { return w.lead.Lost() }
func (w leadingStatusWriter) Close()                { w.lead.Resign() }
