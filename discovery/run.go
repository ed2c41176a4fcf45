package discovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Run follows the source until ctx ends, and then returns ctx's error. It publishes the
// objects that exist at the start even if ctx has already ended. Only one Run may run at a
// time.
func (p *Publisher) Run(ctx context.Context) error {
	sweep := time.NewTicker(p.opts.ProxyIdle)
	defer sweep.Stop()
	var since time.Time    // when the changes of the next publication came
	var busy time.Time     // when the last publication ended
	var rest time.Duration // that must follow it
	placed := false
	var beside sync.WaitGroup // what goes on beside publications
	defer beside.Wait()
	for compiling := context.WithoutCancel(ctx); ; compiling = ctx {
		// Called before Snapshot, so that no change is missed in between.
		changed := timed(ctx, p.opts.Source.Changed(), p.opts.Files.Changed(), p.opts.Keys.Changed())
		if took, ok := p.follow(compiling, since, &beside); ok {
			busy, rest = time.Now(), took
		}
		if !placed && p.Ready() {
			placed = true
			beside.Go(func() { p.admitReturning(ctx) })
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-sweep.C:
				p.fleet.Sweep()
				p.letGo()
				p.checks.rest()
				p.newest.expire(p.expiries.At(time.Now()))
			case since = <-changed:
				waiting = false
			}
		}
		p.holdOff(ctx, busy, rest)
	}
}

// timed sends the time at which one of the channels was closed, even if nobody is receiving
// then.
func timed(ctx context.Context, objects, files, keys <-chan struct{}) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		select {
		case <-objects:
			at <- time.Now()
		case <-files:
			at <- time.Now()
		case <-keys:
			at <- time.Now()
		case <-ctx.Done():
		}
	}()
	return at
}

// holdOff returns at once if the last publication was long ago. Otherwise it waits for the
// end of the hold-off and, if more changes come until then, for the end of the burst. It
// waits for the rest after the last publication in any case.
func (p *Publisher) holdOff(ctx context.Context, last time.Time, rest time.Duration) {
	if !p.Ready() {
		return
	}
	end, ceiling := last.Add(max(p.opts.HoldOff, rest)), time.Now().Add(max(p.opts.MaxHoldOff, rest))
	for {
		wait := min(time.Until(end), time.Until(ceiling))
		if wait <= 0 {
			return
		}
		changed, files, keys := p.opts.Source.Changed(), p.opts.Files.Changed(), p.opts.Keys.Changed()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			continue
		case <-changed:
		case <-files:
		case <-keys:
		}
		if pause := time.Now().Add(p.opts.HoldOff); pause.After(end) {
			end = pause
		}
	}
}

// follow publishes the present content of the source. Its first change came at since.
// follow reports whether there was anything new, and how long publishing worked: the next
// publication waits as long, so that writes have half of the time while they go on. The time
// for which it waited for other work, such as the views of proxies that connect, does not
// count. For a large object the result is 0, because it leaves a processor to others
// (enterLarge). The JSON of a large object is made beside later publications, so that small
// ones do not wait for it; a large one does.
func (p *Publisher) follow(ctx context.Context, since time.Time, beside *sync.WaitGroup) (worked time.Duration, ok bool) {
	start := time.Now()
	before := p.encoder.Current.Load()
	var n news
	err := p.recoverPanic("news", func() error { ok = p.news(meshOf(before), &n); return nil })
	if err == nil && !ok {
		return 0, false
	}
	if err == nil && before == nil {
		err = p.recoverPanic("keys", func() error { p.awaitKeys(ctx, &n); return nil })
		start = time.Now()
	}
	n.large = before != nil && anyLarge(n.changes)
	leave, ended := p.enterLarge(ctx, n)
	if ended != nil {
		return 0, false
	}
	var done *publication
	if err == nil {
		done, err = p.bring(ctx, before, n, since)
	}
	if err != nil {
		leave()
		p.refuse(n, err)
		return time.Since(start), true
	}
	if n.large {
		p.boundPast(n.revision)
	}
	if n.large && p.opts.EnterLarge != nil {
		beside.Go(func() { defer leave(); done.encodeJSON() })
	} else {
		done.encodeJSON()
		leave()
	}
	slots, clients := p.fleet.Size()
	took := time.Since(start)
	p.metrics.publish.Observe(took.Seconds())
	p.opts.Log.InfoContext(ctx, "published", "revision", n.revision, "services", len(done.next.Mesh.Services),
		"views", slots, "changed", len(done.changed), "proxies", clients, "took", took)
	if n.large && p.opts.EnterLarge != nil {
		return 0, true
	}
	return took - done.waited, true
}

// boundPast bounds the views that proxies which do not poll keep in memory. Those views have
// the large objects of their time.
func (p *Publisher) boundPast(revision int64) {
	p.larges = append(p.larges, revision)
	if n := len(p.larges) - pastviews.MaxHeld; n > 0 {
		p.fleet.ForgetReplaced(p.larges[n-1])
		p.larges = p.larges[n:]
	}
}

// enterLarge waits for a processor if the news is large. The error is ctx's.
func (p *Publisher) enterLarge(ctx context.Context, n news) (leave func(), err error) {
	if p.opts.EnterLarge == nil || !n.large {
		return func() {}, nil
	}
	return p.opts.EnterLarge(ctx)
}

// anyLarge reports whether some change has an object that takes long to compile.
func anyLarge(changes []schema.Change) bool {
	return slices.ContainsFunc(changes, func(c schema.Change) bool {
		return large(c.Before) || large(c.After)
	})
}

func large(o *schema.Object) bool { return o != nil && o.Large() }

// bring publishes news.
func (p *Publisher) bring(ctx context.Context, before *compiled.Generation, n news, since time.Time) (*publication, error) {
	snapshot, err := p.snapshot(meshOf(before), n)
	if err != nil {
		return nil, err
	}
	if before == nil {
		p.past.Begin(snapshot)
	}
	var ro *feedback.Rollout
	if since = p.acks.until(n.revision, since); before != nil && !since.IsZero() {
		p.convergence.Dismiss()
		ro = p.convergence.Begin(n.revision, since)
	}
	p.newest.begin()
	done, err := p.publish(ctx, compiled.NewGeneration(p.encoder, snapshot, before), ro, n.large)
	if err != nil {
		return nil, err
	}
	if before != nil {
		p.past.End(before, done.next)
	}
	problems := done.problems()
	problems[expiryPart] = p.expiries.Advance(snapshot, time.Now())
	p.newest.pass(done.next, problems)
	p.metrics.generations.Inc()
	return done, nil
}

// keysPatience is how long the first publication waits for the keys of issuers. Without them
// proxies would refuse the tokens that they took before this server started.
const keysPatience = 5 * time.Second

// awaitKeys waits until the keys that the first news needs were tried, and adds them.
func (p *Publisher) awaitKeys(ctx context.Context, n *news) {
	var authentications []*schema.Object
	for _, c := range n.changes {
		if c.After != nil && c.After.Kind.Kind == schema.KindRequestAuthentication {
			authentications = append(authentications, c.After)
		}
	}
	p.opts.Keys.Want(mesh.KeySources(authentications))
	ctx, cancel := context.WithTimeout(ctx, keysPatience)
	defer cancel()
	p.opts.Keys.Tried(ctx)
	n.keys = p.opts.Keys.Keys()
}

// refuse keeps everything that was last published.
func (p *Publisher) refuse(n news, err error) {
	p.opts.Log.Error("not published: the last good configuration stays", "revision", n.revision, "err", err)
	p.metrics.refusals.Inc()
	p.newest.refuse(n,
		diag.List{feedback.NewRefusalProblem(diag.NotPublished, "nothing of this state of the configuration is in force, all proxies keep what they had: "+err.Error())})
}
