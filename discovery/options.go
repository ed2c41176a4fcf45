package discovery

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
)

// Options configure a Publisher. Source is required. Everything else has a default.
type Options struct {
	Source   Source
	Settings *mesh.Settings
	// Files has the contents of the SecretFiles of the settings; nil for none.
	Files Files
	// Keys has the public keys of the issuers that objects name; nil for none.
	Keys Keys
	// CatchUp waits until the source has all changes that any replica stored before the
	// call, and returns the revision that the source has then. Nil is for a source that is
	// never behind.
	CatchUp func(ctx context.Context) (revision int64, err error)
	// LeftOut returns a problem for each stored value that the source cannot read, and so
	// does not return as an object. Nil is for a source that reads everything.
	LeftOut func() diag.List
	// PastSettings are earlier settings. Proxies may have received configuration compiled
	// under them before this start. Clusters that exist only under these settings stay
	// until no known proxy needs them.
	PastSettings []*mesh.Settings
	Log          *slog.Logger
	// Registry receives the metrics. With nil they are not shown.
	Registry prometheus.Registerer

	// HoldOff is the time after a publication in which nothing else is published (default
	// 100 ms). The first change after that is published at once. An earlier change waits
	// for its end and, while more changes follow, for a pause of the same length. So a
	// burst of writes is compiled once. MaxHoldOff is the longest that a change waits
	// (default 500 ms). After a publication that took longer than either, the next one
	// waits as long as that one took.
	HoldOff, MaxHoldOff time.Duration
	// EnterLarge waits for a processor before each publication with a large object. leave
	// is called at its end. Such a publication leaves the other processors to requests. Nil
	// means that it may use all of them at once.
	EnterLarge func(ctx context.Context) (leave func(), err error)
	// CheckPatience is how long a write may wait for the problems of its objects among all
	// others (default 500 ms). Checks may take a tenth of a processor's time. A second of
	// it may be saved up or, if that is longer, CheckPatience.
	CheckPatience time.Duration
	// ProxyIdle is how long a proxy may be silent before its view is no longer compiled in
	// advance (default 10 minutes). If it asks again, the view is compiled then.
	ProxyIdle time.Duration
	// AbsentFor is how long the server remembers a proxy after it disconnects (default 24
	// hours).
	AbsentFor time.Duration
	// Alone means that no other server uses this source to answer proxies.
	Alone bool
	// Others know the proxies of the other replicas; nil for no others.
	Others Others
	// MaxViews bounds the views kept (default 2,000). One more replaces the least recently
	// requested view: first among those that only proxies without a known workload use,
	// then among all.
	MaxViews int
	// MaxProxies bounds the proxies that are remembered, in the same way (default 50,000).
	// A forgotten proxy is served, but nothing is compiled for it in advance. The number
	// also bounds the listener lists of a view and, separately, the encoded endpoint sets.
	MaxProxies int
	// MaxResults bounds the results that all compilers together keep, half a KiB each
	// (default 16,000,000). A view that would exceed it is not compiled: a new view is
	// refused, and an existing one stays unchanged.
	MaxResults int
}

func (o Options) withDefaults() Options {
	if o.Settings == nil {
		o.Settings = mesh.DefaultSettings()
	}
	if o.Files == nil {
		o.Files = noFiles{}
	}
	if o.Keys == nil {
		o.Keys = noKeys{}
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
