package discovery

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/nack"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// subscribed is one type on a stream: what the proxy asks for, what it was sent
// and what it has acknowledged.
type subscribed struct {
	typeURL string
	byName  bool // no names mean nothing, and neither does a wildcard
	asked   bool
	all     bool // a wildcard: everything, whatever it is called
	unnamed bool // because nothing was ever named
	named   names
	fresh   fresh
	owed    owed
	came    came

	newest   string      // nonce of the last response
	underway []*sending  // responses that are not answered yet, oldest first
	sent     compiled.At // what the last response led to
	good     compiled.At // what the last that was acknowledged did
	nacks    nack.State
}

// sending is a response on its way.
type sending struct {
	nack.Sent
	version string
	adds    bool // clusters that the proxy may not have
	made    int  // of the resources, those made because their names were asked for
	since   time.Time
}

// owed is what a proxy is to be sent although it was sent it before.
type owed struct {
	answer bool // something, even if there is nothing in it
	all    bool // that it wants
	names  map[string]struct{}
	bytes  int // of names
	// later are names that nobody has, for which the last response had no room. made
	// counts those for which the next one makes resources.
	later []string
	made  int
}

func (o *owed) add(name string) {
	if o.has(name) {
		return
	}
	if o.names == nil {
		o.names = map[string]struct{}{}
	}
	o.names[name] = struct{}{}
	o.bytes += len(name)
}

func (o *owed) remove(name string) {
	if o.has(name) {
		delete(o.names, name)
		o.bytes -= len(name)
	}
}

func (o *owed) has(name string) bool {
	_, ok := o.names[name]
	return ok
}

func (o *owed) nothing() bool {
	return !o.answer && !o.all && len(o.names) == 0 && len(o.later) == 0
}

const wildcard = "*"

// wild reports whether the type is one that no names mean all of, and of which
// a response says what there is no more.
func (t *subscribed) Wild() bool {
	return t.typeURL == xds.ClusterType || t.typeURL == xds.ListenerType
}

func (t *subscribed) Wants(name string) bool { return t.all || t.named.has(name) }

// answered takes the answer to a response in, and reports whether the request
// knows of all that was sent.
func (t *subscribed) answered(r Request) (current bool) {
	if r.Nonce == "" {
		return true
	}
	i := slices.IndexFunc(t.underway, func(s *sending) bool { return s.Nonce == r.Nonce })
	if i >= 0 {
		s, before := t.underway[i], slices.Clone(t.underway[:i])
		t.underway = slices.Delete(t.underway, 0, i+1)
		if r.Refused == nil {
			t.accept(s)
		} else {
			t.acceptOf(before, r.Version)
			t.nacks.Nack(t, &s.Sent, *r.Refused)
		}
	}
	return r.Nonce == t.newest || t.newest == ""
}

// acceptOf takes in what a refusal says of the responses before: its version is that of
// the one which the proxy took last, whose answer it may have withheld while clusters
// warm.
func (t *subscribed) acceptOf(before []*sending, version string) {
	for _, s := range slices.Backward(before) {
		if s.version == version && version != "" {
			t.accept(s)
			return
		}
	}
}

func (t *subscribed) accept(s *sending) {
	t.good = s.At
	for _, r := range s.Resources {
		t.fresh.remove(r.Name)
		t.nacks.AckTable(t, r)
	}
	t.nacks.Ack(&s.Sent)
}

// subscribeTo takes the names of a state-of-the-world client, which are all that
// it wants. None mean everything until some were named.
func (t *subscribed) subscribeTo(r Request) {
	if !t.asked {
		t.asked, t.unnamed, t.came.version = true, t.Wild() && !t.byName, r.Version
	}
	t.unnamed = t.unnamed && len(r.Names) == 0
	before := *t
	t.all = t.unnamed || !t.byName && slices.Contains(r.Names, wildcard)
	list := slices.DeleteFunc(slices.Clone(r.Names), func(n string) bool { return n == wildcard })
	if !t.named.are(list) {
		t.named = names{}
		for _, n := range list {
			t.named.add(n)
			if !before.named.has(n) {
				t.begin(n, before.Wants(n))
			}
		}
	}
	if t.all && !before.all {
		t.beginAll(before.Wants)
	}
	t.forget()
}

// subscribeDelta takes the changes of a delta client.
func (t *subscribed) subscribeDelta(r Request) {
	if !t.asked {
		t.asked = true
		t.comeWith(r.Initial)
		if t.Wild() && len(r.Subscribe)+len(r.Unsubscribe) == 0 {
			r.Subscribe = []string{wildcard}
		}
	}
	for _, n := range r.Unsubscribe {
		t.unsubscribe(n)
	}
	t.forget()
	for _, n := range r.Subscribe {
		t.subscribe(n)
	}
}

// subscribe is answered even to who is subscribed.
func (t *subscribed) subscribe(name string) {
	if name == wildcard {
		t.beginAll(t.Wants)
		t.all = true
		return
	}
	t.begin(name, t.Wants(name))
	t.named.add(name)
}

func (t *subscribed) unsubscribe(name string) {
	if name == wildcard {
		t.all = false
		return
	}
	t.named.remove(name)
	t.owed.remove(name)
	if t.all {
		// Who forgets it is still to have it.
		t.owed.add(name)
	}
}

func (t *subscribed) owe(all []*xds.Resource) {
	for _, r := range all {
		t.owed.add(r.Name)
	}
}

// rests takes note of it, and reports it, when the proxy has acknowledged all that
// it wants of where it should be.
func (t *subscribed) rests(to compiled.At) bool {
	if len(t.underway) > 0 || !t.owed.nothing() || !t.nacks.None() || !t.wasSent(to.Set) {
		return false
	}
	t.rest(to)
	return true
}

// rest takes note that of a set there is nothing to be sent.
func (t *subscribed) rest(to compiled.At) {
	t.sent, t.owed = to, owed{}
	if len(t.underway) == 0 {
		t.good = to
		t.nacks.Rest()
	}
}

// wasSent reports whether the proxy was sent all that it wants of a set.
func (t *subscribed) wasSent(s *xds.Set) bool { return t.sent.Set != nil && t.Alike(t.sent.Set, s) }

// alike reports whether two sets are the same in all that the proxy wants.
func (t *subscribed) Alike(older, s *xds.Set) bool {
	d := s.Since(older)
	if slices.ContainsFunc(d.Changed, func(r *xds.Resource) bool { return t.Wants(r.Name) }) {
		return false
	}
	return !t.Wild() || !slices.ContainsFunc(d.Removed, t.Wants)
}

// maybeAt calls back with the views that the proxy may be at, for some of what it
// wants.
func (t *subscribed) maybeAt(visit func(*compiled.View)) {
	visit(t.good.View)
	for _, s := range t.underway {
		visit(s.View)
	}
	t.nacks.MaybeAt(visit)
}

// Acknowledged is the last resource of a name that the proxy took, when nothing of the name
// is refused; nil for none.
func (t *subscribed) Acknowledged(name string) *xds.Resource {
	if t.fresh.has(name) {
		return nil
	}
	return t.good.Named(name)
}

// What package nack asks and decides (nack.Subscription).

// TypeURL is that of the type.
func (t *subscribed) TypeURL() string { return t.typeURL }

// Acked is what the proxy acknowledged last.
func (t *subscribed) Acked() compiled.At { return t.good }

// CameWithSomething reports whether the proxy had something of the type before its stream.
func (t *subscribed) CameWithSomething() bool { return t.came.before }

// Owe has the next response hold a resource of a name again.
func (t *subscribed) Owe(name string) { t.owed.add(name) }

// OweAnswer has a next response, even if there is nothing in it.
func (t *subscribed) OweAnswer() { t.owed.answer = true }

// Restart has the next response hold all that the proxy wants.
func (t *subscribed) Restart() { t.sent = compiled.At{} }
