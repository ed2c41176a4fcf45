package jwks

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Source is where the keys of an issuer are. One of the fields is set.
type Source struct {
	// URI is the URL of the keys.
	URI string
	// Issuer is the URL of an issuer that says where its keys are, by OpenID Connect Discovery.
	Issuer string
}

// State is what is known of a source. The zero value means that it was not tried yet. States
// that are equal by == are the same.
type State struct {
	// Keys are the last good public keys, as a JSON Web Key Set; "" if there are none, or if
	// they are too old.
	Keys string
	// Problem says why the last fetch brought no keys; "" if it did. It has nothing of what the
	// endpoint answered.
	Problem string
}

// Options configure a Fetcher.
type Options struct {
	// Addresses are the CIDR blocks from which keys are fetched; none for all addresses but
	// those of the machine and of its link.
	Addresses []string
	// CAFile has the authorities of the endpoints; "" for those of the system.
	CAFile string
	// Refresh is the time between two fetches of the same keys (default 5 minutes). After a failure the
	// next one comes after Retry (default 5 s), and then twice as late each time, up to Refresh.
	Refresh, Retry time.Duration
	// Keep is how long keys are good after their last fetch (default 24 hours).
	Keep time.Duration
	Log  *slog.Logger
}

// mostAtOnce bounds the fetches at one time.
const mostAtOnce = 8

// Fetcher fetches the keys that are wanted, and again from time to time. Its methods are safe
// for concurrent use.
type Fetcher struct {
	opts   Options
	client *http.Client
	wake   chan struct{} // has a value if there are new sources
	slots  chan struct{} // one for each fetch at a time

	mu      sync.Mutex
	sources map[Source]*followed
	changed chan struct{}
}

// followed is a source that is wanted.
type followed struct {
	state    State
	patience time.Duration
	got      time.Time // when Keys were fetched last
	next     time.Time // when they are fetched again
	failures int       // since the last success
	busy     bool
}

// New returns a fetcher that wants nothing yet. The error is about CAFile or Addresses.
func New(o Options) (*Fetcher, error) {
	for _, d := range []struct {
		option  *time.Duration
		instead time.Duration
	}{{&o.Refresh, 5 * time.Minute}, {&o.Retry, 5 * time.Second}, {&o.Keep, 24 * time.Hour}} {
		if *d.option == 0 {
			*d.option = d.instead
		}
	}
	client, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &Fetcher{
		opts: o, client: client, wake: make(chan struct{}, 1), slots: make(chan struct{}, mostAtOnce),
		sources: map[Source]*followed{}, changed: make(chan struct{}),
	}, nil
}

// Want sets the sources whose keys are fetched, each with the longest time for a fetch. The
// others are forgotten.
func (f *Fetcher) Want(sources map[Source]time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.states()
	for source := range f.sources {
		if _, still := sources[source]; !still {
			delete(f.sources, source)
		}
	}
	for source, patience := range sources {
		if f.sources[source] == nil {
			f.sources[source] = &followed{}
			select {
			case f.wake <- struct{}{}:
			default:
			}
		}
		f.sources[source].patience = patience
	}
	f.tell(before)
}

// States returns what is known of the sources that are wanted. The map is the caller's.
func (f *Fetcher) States() map[Source]State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states()
}

func (f *Fetcher) states() map[Source]State {
	out := make(map[Source]State, len(f.sources))
	for source, one := range f.sources {
		out[source] = one.state
	}
	return out
}

// Changed returns a channel that is closed at the next change of States after the call.
func (f *Fetcher) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// tell closes the channel of Changed if the states are not those before.
func (f *Fetcher) tell(before map[Source]State) {
	if !maps.Equal(before, f.states()) {
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// Tried waits until each wanted source was tried once, or until ctx ends.
func (f *Fetcher) Tried(ctx context.Context) {
	for {
		changed, untried := f.Changed(), false
		for _, state := range f.States() {
			untried = untried || state == (State{})
		}
		if !untried {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// Run fetches keys until ctx ends, and returns ctx's error.
func (f *Fetcher) Run(ctx context.Context) error {
	var fetches sync.WaitGroup
	defer fetches.Wait()
	for {
		due, wait := f.due(time.Now())
		for _, source := range due {
			fetches.Go(func() { f.follow(ctx, source) })
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		case <-f.wake:
			timer.Stop()
		}
	}
}

// due returns the sources to fetch now, and the time until it must be called again. It drops
// keys that are too old.
func (f *Fetcher) due(now time.Time) (due []Source, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.states()
	wait = f.opts.Refresh
	for source, one := range f.sources {
		if one.state.Keys != "" && now.Sub(one.got) >= f.opts.Keep {
			one.state.Keys = ""
		}
		switch {
		case one.busy:
		case !one.next.After(now):
			one.busy = true
			due = append(due, source)
		default:
			wait = min(wait, one.next.Sub(now))
		}
	}
	f.tell(before)
	return due, wait
}

// follow fetches the keys of a source once.
func (f *Fetcher) follow(ctx context.Context, source Source) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return
	}
	f.mu.Lock()
	one := f.sources[source]
	if one == nil {
		f.mu.Unlock()
		return
	}
	patience := one.patience
	f.mu.Unlock()
	keys, err, cause := f.fetch(ctx, source, patience)
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sources[source] != one {
		return // It is not wanted any more, or again.
	}
	before := f.states()
	one.take(keys, err, f.opts)
	if state := one.state; state.Problem != "" && state != before[source] {
		f.opts.Log.Warn("the public keys of an issuer cannot be fetched", "uri", source.URI, "issuer", source.Issuer, "problem", state.Problem, "cause", cause, "last keys", state.Keys != "")
	}
	f.tell(before)
	select {
	case f.wake <- struct{}{}: // There is a new time to fetch.
	default:
	}
}

// take notes the end of a fetch.
func (one *followed) take(keys string, err error, o Options) {
	now := time.Now()
	one.busy = false
	if err == nil {
		one.state, one.got, one.failures, one.next = State{Keys: keys}, now, 0, now.Add(o.Refresh)
		return
	}
	one.state.Problem = err.Error()
	one.next = now.Add(min(o.Refresh, o.Retry<<min(one.failures, 16)))
	one.failures++
}
