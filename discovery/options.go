package discovery

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// Options for New. Source is required, all else has a default.
type Options struct {
	Source   Source
	Settings *mesh.Settings
	// Files are what the SecretFiles of the settings are read from; nil for nothing.
	Files Files
	// CatchUp has the source reach all that was stored before the call, whichever
	// replica stored it, and returns the revision that it has reached then. Nil is for a
	// source that is never behind.
	CatchUp func(ctx context.Context) (revision int64, err error)
	// LeftOut are problems of stored values that the source cannot read, and so
	// leaves out of the objects. Nil is for a source that reads all.
	LeftOut func() diag.List
	// PastSettings are those of configuration that proxies may have been sent before this
	// start; clusters that only they make stay until no proxy is seen to need
	// them.
	PastSettings []*mesh.Settings
	Log          *slog.Logger
	// Registry receives the metrics; nil keeps them unseen.
	Registry prometheus.Registerer

	// HoldOff is how long nothing is published after a publication: the first
	// change after that is published at once. One that comes earlier waits for
	// its end, and if more follow, until there were none for as long, so that a
	// burst of writes is compiled once; MaxHoldOff is the longest that a change
	// waits. 100 ms and 500 ms.
	HoldOff, MaxHoldOff time.Duration
	// EnterLarge waits for a processor for each publication that has a large object in it;
	// leave is called when that is done. The publication leaves the other processors to
	// requests. Nil means that it may have them all at once.
	EnterLarge func(ctx context.Context) (leave func(), err error)
	// CheckPatience is how long a write may wait for what is wrong with it among the
	// other objects. 500 ms. More than a second is also what checks may take at once,
	// of the tenth of a processor that is theirs.
	CheckPatience time.Duration
	// ProxyIdle is how long a proxy may be silent before its view is no
	// longer compiled ahead; it is compiled when it asks again. 10 minutes.
	ProxyIdle time.Duration
	// AbsentFor is how long a proxy that was connected and is not now is still known. 24
	// hours.
	AbsentFor time.Duration
	// Others know the proxies of the other replicas; nil for no others.
	Others Others
	// MaxViews bounds the views kept. One more takes the place of the one
	// that proxies beside no known workload asked for longest ago, or else any
	// proxy. 2,000.
	MaxViews int
	// MaxProxies bounds the proxies remembered, likewise: a forgotten one is
	// served, but not compiled ahead for. It also bounds, each on its own, the listener
	// lists of a view and the endpoint sets kept encoded. 50,000.
	MaxProxies int
	// MaxResults bounds the results that compilers keep together, half a KiB each. A
	// view that would exceed it is not compiled: a new one is refused, and one that
	// proxies have stays as it is. 16,000,000.
	MaxResults int
}

func (o Options) withDefaults() Options {
	if o.Settings == nil {
		o.Settings = mesh.DefaultSettings()
	}
	if o.Files == nil {
		o.Files = noFiles{}
	}
	if o.LeftOut == nil {
		o.LeftOut = func() diag.List { return nil }
	}
	if o.Others == nil {
		o.Others = noOthers{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		option  *time.Duration
		instead time.Duration
	}{
		{&o.HoldOff, 100 * time.Millisecond},
		{&o.MaxHoldOff, 500 * time.Millisecond},
		{&o.CheckPatience, 500 * time.Millisecond},
		{&o.ProxyIdle, 10 * time.Minute},
		{&o.AbsentFor, 24 * time.Hour},
	} {
		if *d.option == 0 {
			*d.option = d.instead
		}
	}
	if o.MaxResults == 0 {
		o.MaxResults = 16_000_000
	}
	if o.MaxViews == 0 {
		o.MaxViews = 2_000
	}
	if o.MaxProxies == 0 {
		o.MaxProxies = 50_000
	}
	return o
}
