package stream

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/nack"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// subscription is one type on a stream: what the proxy subscribes to, what it was sent
// and what it has acked.
type subscription struct {
	typeURL string
	byName  bool // a request without names means nothing, and neither does a wildcard
	asked   bool
	all     bool // everything, by a wildcard
	unnamed bool // because no name was ever given
	named   names
	newly   newlySubscribed
	pending pending
	closing bool // a route table of the proxy is to be closed (goneTables)
	initial initialVersions

	lastNonce    string          // nonce of the last response
	inFlight     []*sentResponse // responses that are not answered yet, oldest first
	sent         compiled.At     // what the last response led to
	acked        compiled.At     // what the last response that was acked led to
	nacks        nack.State
	ackedVersion string      // of the last response that was acked
	resumed      bool        // it goes on from an earlier stream
	waiting      time.Time   // since when listeners or routes that are due wait for clusters; zero if they do not
	clusters     *nack.State // of listeners and route tables: what is nacked of the clusters they lead to
	address      string      // of the proxy
}

// sentResponse is a response in flight.
type sentResponse struct {
	nack.Sent
	version string
	adds    []string // clusters that the proxy may lack
	made    int      // number of resources that were made only because their names were asked for
	since   time.Time
}

// pending has the resources that a proxy must be sent, even if they were sent before.
type pending struct {
	answer bool // a response, even an empty one
	all    bool // everything that the proxy wants
	names  map[string]struct{}
	bytes  int // of names
	// later are names that do not exist and that had no room in the last response. made
	// counts those for which the next response makes resources.
	later []string
	made  int
}

func (o *pending) add(name string) {
	if o.has(name) {
		return
	}
	if o.names == nil {
		o.names = map[string]struct{}{}
	}
	o.names[name] = struct{}{}
	o.bytes += len(name)
}

func (o *pending) remove(name string) {
	if o.has(name) {
		delete(o.names, name)
		o.bytes -= len(name)
	}
}

func (o *pending) has(name string) bool {
	_, ok := o.names[name]
	return ok
}

func (o *pending) nothing() bool {
	return !o.answer && !o.all && len(o.names) == 0 && len(o.later) == 0
}

const wildcard = "*"

// Wild reports whether a request without names means all resources of the type, so that a
// response also reports removed ones.
func (t *subscription) Wild() bool {
	return t.typeURL == xds.ClusterType || t.typeURL == xds.ListenerType
}

func (t *subscription) Wants(name string) bool { return t.all || t.named.has(name) }

// answered records an ack or nack, and reports whether the request knows everything that
// was sent.
func (t *subscription) answered(r Request) (current bool) {
	if r.Nonce == "" {
		return true
	}
	i := slices.IndexFunc(t.inFlight, func(s *sentResponse) bool { return s.Nonce == r.Nonce })
	if i >= 0 {
		s, before := t.inFlight[i], slices.Clone(t.inFlight[:i])
		t.inFlight = slices.Delete(t.inFlight, 0, i+1)
		if r.Refused == nil {
			t.accept(s)
		} else {
			t.acceptOf(before, r.Version)
			t.nacks.Nack(t, &s.Sent, *r.Refused)
			t.noteUnanswered(before)
		}
	}
	return r.Nonce == t.lastNonce || t.lastNonce == ""
}

// acceptOf records what a nack says about the responses before it. Its version is that of
// the response that the proxy acked last. The proxy may have withheld that ack while
// clusters warm.
func (t *subscription) acceptOf(before []*sentResponse, version string) {
	for _, s := range slices.Backward(before) {
		if s.version == version && version != "" {
			t.accept(s)
			return
		}
	}
}

// noteUnanswered records that the proxy may have accepted the responses before one that it
// nacked.
func (t *subscription) noteUnanswered(before []*sentResponse) {
	for _, s := range before {
		for _, r := range s.Resources {
			t.nacks.MayHave(r.Name)
		}
	}
}

func (t *subscription) accept(s *sentResponse) {
	t.acked, t.ackedVersion = s.At, s.version
	for _, r := range s.Resources {
		t.newly.remove(r.Name)
		t.nacks.AckTable(t, r)
	}
	t.nacks.Ack(&s.Sent)
}

// subscribeTo records the names of a state-of-the-world client, which are all that it
// wants. A request without names means everything, until a request has named some.
func (t *subscription) subscribeTo(r Request) {
	if !t.asked {
		t.asked, t.unnamed, t.initial.version = true, t.Wild() && !t.byName, r.Version
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

// subscribeDelta records the changes of a delta client.
func (t *subscription) subscribeDelta(r Request) {
	if !t.asked {
		t.asked = true
		t.takeInitial(r.Initial)
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

// subscribe makes a name pending even if the proxy is subscribed already.
func (t *subscription) subscribe(name string) {
	if name == wildcard {
		t.beginAll(t.Wants)
		t.all = true
		return
	}
	t.begin(name, t.Wants(name))
	t.named.add(name)
}

func (t *subscription) unsubscribe(name string) {
	if name == wildcard {
		t.all = false
		return
	}
	t.named.remove(name)
	t.pending.remove(name)
	if t.all {
		// After it unsubscribes, the proxy still has the name by its wildcard.
		t.pending.add(name)
	}
}

func (t *subscription) addPending(all []*xds.Resource) {
	for _, r := range all {
		t.pending.add(r.Name)
	}
}

// rests reports whether the proxy has acked everything that it wants of the target, and
// records that.
func (t *subscription) rests(to compiled.At) bool {
	if len(t.inFlight) > 0 || !t.pending.nothing() || t.closing || !t.nacks.None() || !t.wasSent(to.Set) {
		return false
	}
	t.rest(to)
	return true
}

// rest records that nothing of a set has to be sent.
func (t *subscription) rest(to compiled.At) {
	t.sent, t.pending = to, pending{}
	if len(t.inFlight) == 0 {
		t.acked = to
		t.nacks.Rest()
	}
}

// wasSent reports whether the proxy was sent everything that it wants of a set.
func (t *subscription) wasSent(s *xds.Set) bool { return t.sent.Set != nil && t.Alike(t.sent.Set, s) }

// Alike reports whether two sets are equal in everything that the proxy wants.
func (t *subscription) Alike(older, s *xds.Set) bool {
	d := s.Since(older)
	if slices.ContainsFunc(d.Changed, func(r *xds.Resource) bool { return t.Wants(r.Name) }) {
		return false
	}
	return !t.Wild() || !slices.ContainsFunc(d.Removed, t.Wants)
}

// maybeAt calls back with the views that the proxy may be at for some of what it wants.
func (t *subscription) maybeAt(visit func(*compiled.View)) {
	visit(t.acked.View)
	for _, s := range t.inFlight {
		visit(s.View)
	}
	t.nacks.MaybeAt(visit)
}

// Acknowledged returns the last resource of a name that the proxy acked, or nil for none.
// It ignores nacks.
func (t *subscription) Acknowledged(name string) *xds.Resource {
	if t.newly.has(name) {
		return nil
	}
	return t.acked.Named(name)
}

// The following methods implement nack.Subscription.

// TypeURL returns the URL of the type.
func (t *subscription) TypeURL() string { return t.typeURL }

// Acked returns what the proxy acked last.
func (t *subscription) Acked() compiled.At { return t.acked }

// Address returns the address of the proxy.
func (t *subscription) Address() string { return t.address }

// ClusterNacks returns the nacks of the clusters that listeners and route tables lead to.
func (t *subscription) ClusterNacks() *nack.State { return t.clusters }

// CameWithSomething reports whether the proxy had resources of the type before its stream
// began.
func (t *subscription) CameWithSomething() bool { return t.initial.before }

// AddPending adds the resource of a name to the next response.
func (t *subscription) AddPending(name string) { t.pending.add(name) }

// RequireAnswer sends a next response even if it is empty.
func (t *subscription) RequireAnswer() { t.pending.answer = true }

// Restart makes the next response have everything that the proxy wants.
func (t *subscription) Restart() { t.sent = compiled.At{} }
