package nack

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/ir"
)

// State has the resources of one type that a proxy has nacked. A nacked resource is not sent again until
// there is another version of it.
//
// Usually the message of the proxy names the resource to blame. If it names none, State
// searches by halves: it sends one half after the other, then the halves of the nacked
// half, until a single resource remains.
type State struct {
	byName map[string]*Nacked // by name
	// tables are the route tables in which some parts stay as the proxy acked them: parts
	// that it nacked, and routes that lead to clusters that it nacks.
	tables map[string]*partialRoutes
	// search are the groups of resources to send. The first is on trial, the others wait.
	search [][]*xds.Resource
	trial  string // nonce of the response with the first; "" before it is sent
	// whole is a set that the proxy nacked entirely, as far as is known. The next change
	// sends everything again.
	whole      *xds.Set
	wholeWords string
	// unclear are the views that nacked responses led to: the proxy does not say which
	// of their resources it applied.
	unclear []*compiled.View
}

// Nacked is a resource that a proxy refuses, or may refuse.
type Nacked struct {
	hash    xds.Digest
	Words   string         // the proxy's
	blame   bool           // it is to blame, not only a suspect
	tried   bool           // it is sent again, because it may be innocent
	acked   *xds.Resource  // what the proxy acked before, nil if that is not known
	mayHave bool           // another version, which it was sent and has not answered
	table   *ir.RouteTable // that this is, of a route table
	View    *compiled.View // that this is of
	needs   *compiled.View // clusters that it leads to besides
	Origins []diag.Ref     // to blame; nil if all objects that it came from are
	// listener is acked, if this is a listener that is held back because of a cluster. The
	// proxy was not sent it.
	listener *ir.Listener
}

func (f *State) None() bool {
	return len(f.byName) == 0 && len(f.tables) == 0 && len(f.unclear) == 0
}

// Partial returns the resource as it is sent: a route table without its nacked parts.
func (f *State) Partial(r *xds.Resource) *xds.Resource {
	if r != nil && f.tables[r.Name] != nil {
		return f.tables[r.Name].sent.Resource
	}
	return r
}

// holdsBack reports whether a resource must not be sent.
func (f *State) holdsBack(r *xds.Resource) bool {
	c := f.byName[r.Name]
	return c != nil && c.hash == r.Hash && !c.tried
}

// Instead returns the resource to send in place of a nacked one: the last version that the
// proxy acked, or nil if it acked none.
func (f *State) Instead(r *xds.Resource) *xds.Resource {
	if r = f.Partial(r); r != nil && f.holdsBack(r) {
		return f.byName[r.Name].acked
	}
	return r
}

// Lacks reports whether the proxy may have no resource of the name, because it nacked the
// one that it was sent.
func (f *State) Lacks(name string) bool {
	c := f.byName[name]
	return c != nil && c.acked == nil
}

// MayHave records that the proxy may have accepted another version of a nacked resource,
// because it has not answered the response with that version.
func (f *State) MayHave(name string) {
	if c := f.byName[name]; c != nil {
		c.mayHave = true
	}
}

func (f *State) MaybeAt(visit func(*compiled.View)) {
	for _, c := range f.byName {
		visit(c.View)
		visit(c.needs)
	}
	for _, a := range f.tables {
		visit(a.from)
		visit(a.needs)
	}
	f.MaybeAtUnclear(visit)
}

// MaybeAtUnclear visits the views that the proxy may be at because it nacked responses, and
// that are not known by resource.
func (f *State) MaybeAtUnclear(visit func(*compiled.View)) {
	for _, v := range f.unclear {
		visit(v)
	}
}

// StandIns visits the nacked resources other than route tables, with the views that the proxy
// keeps them of: nil if that is not known, or if the proxy has none.
func (f *State) StandIns(visit func(name string, v *compiled.View)) {
	for name, c := range f.byName {
		if c.listener == nil { // Otherwise only the clusters of the listener differ.
			visit(name, c.View)
		}
	}
}

// doubt notes that the proxy may be at a view that it nacked. It keeps the last few.
func (f *State) doubt(v *compiled.View) {
	if slices.Contains(f.unclear, v) {
		return
	}
	if len(f.unclear) == pastviews.MaxHeld {
		f.unclear = f.unclear[1:]
	}
	f.unclear = append(f.unclear, v)
}

// NoteSent records the response that contains the resources on trial.
func (f *State) NoteSent(nonce string) {
	if len(f.search) > 0 && f.trial == "" {
		f.trial = nonce
	}
}

// Forget drops the names that the proxy no longer subscribes to.
func (f *State) Forget(wanted func(name string) bool) {
	maps.DeleteFunc(f.byName, func(name string, _ *Nacked) bool { return !wanted(name) })
	maps.DeleteFunc(f.tables, func(name string, _ *partialRoutes) bool { return !wanted(name) })
}

// Rest records that there is nothing to send. If nothing is nacked, the proxy has acked
// everything that it subscribes to.
func (f *State) Rest() {
	if len(f.byName) == 0 && len(f.tables) == 0 && len(f.search) == 0 {
		f.unclear = nil
	}
}

// concluded reports whether a trial ends with the answer to a response.
func (f *State) concluded(nonce string) bool {
	if f.trial == "" || f.trial != nonce {
		return false
	}
	f.search, f.trial = f.search[1:], ""
	return true
}

// Next returns the next resources to send on trial. It returns none while others are on
// trial.
func (f *State) Next() []*xds.Resource {
	if len(f.search) == 0 || f.trial != "" {
		return nil
	}
	for _, r := range f.search[0] {
		f.byName[r.Name].tried = true
	}
	return f.search[0]
}

// Ack records that the proxy acked a response, or that it may move on to another version of
// a nacked resource.
func (f *State) Ack(s *Sent) {
	f.concluded(s.Nonce)
	if len(f.search) == 0 {
		f.unclear = nil
	}
	for _, r := range s.Resources {
		if c := f.byName[r.Name]; c != nil && c.hash == r.Hash {
			delete(f.byName, r.Name)
		}
	}
	for name, c := range f.byName {
		if c.listener != nil {
			continue // Its cluster decides (holdListeners).
		}
		if r := f.Partial(s.Named(name)); r == nil || r.Hash != c.hash {
			delete(f.byName, name)
		}
	}
}

// Revise removes changed resources from the search.
func (f *State) Revise(find func(string) *xds.Resource) {
	if len(f.search) == 0 || f.trial != "" {
		return
	}
	other := func(r *xds.Resource) bool {
		now := f.Partial(find(r.Name))
		return now == nil || now.Hash != r.Hash || f.byName[r.Name] == nil
	}
	for i, half := range f.search {
		f.search[i] = slices.DeleteFunc(slices.Clone(half), other)
	}
	f.search = slices.DeleteFunc(f.search, func(half []*xds.Resource) bool { return len(half) == 0 })
}

// Nack finds out which resources of a response are to blame, and makes the others pending
// again, because the proxy does not say which of them it applied.
func (f *State) Nack(t Subscription, s *Sent, words string) {
	f.doubt(s.View)
	// A slice of the resources would keep all of them in memory.
	words = strings.Clone(kept(words))
	tried := f.concluded(s.Nonce)
	suspects, explained := f.suspects(t, s, tried)
	if len(suspects) == 0 {
		if explained {
			f.withdrawAgain(t, s)
		}
		return
	}
	blamed := f.namedIn(t, words, suspects)
	if f.aboutAll(t, s, len(blamed) > 0) {
		f.whole, f.wholeWords = s.Set, words
		t.Restart()
		return
	}
	if len(blamed) == 0 && !explained && len(suspects) == 1 {
		blamed = suspects
	}
	for _, r := range suspects {
		f.suspect(t, r, words)
	}
	for _, r := range blamed {
		f.blame(t, s.View, r, words)
	}
	if len(blamed) == 0 && !explained {
		half := len(suspects) / 2
		f.search = slices.Insert(f.search, 0, suspects[:half:half], suspects[half:])
	} else {
		f.again(t, suspects)
	}
	f.withdrawAgain(t, s)
}

// withdrawAgain sends the removals of a nacked response again.
func (f *State) withdrawAgain(t Subscription, s *Sent) {
	for _, name := range s.Removed {
		if !f.Lacks(name) {
			t.AddPending(name)
		}
	}
	if !s.Delta && t.Wild() && slices.ContainsFunc(s.Set.Since(t.Acked().Set).Removed, t.Wants) {
		t.RequireAnswer()
	}
}

// Each yields the resources of a set that the proxy nacks, sorted by name. The name is ""
// if it nacks the whole set.
func (f *State) Each(t Subscription, desired *xds.Set) iter.Seq2[string, *Nacked] {
	return func(yield func(string, *Nacked) bool) {
		if f.whole != nil && t.Alike(f.whole, desired) && !yield("", &Nacked{Words: f.wholeWords, blame: true}) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(f.byName)) {
			c, r := f.byName[name], desired.Named(name)
			if c.blame && r != nil && r.Hash == c.hash && !yield(name, c) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f.tables)) {
			a, r := f.tables[name], desired.Named(name)
			if r != nil && r.Hash == a.target.Hash && !a.blamed(func(c *Nacked) bool { return yield(name, c) }) {
				return
			}
		}
	}
}

// blame records that a resource is to blame. For a route table it starts or continues the
// search for the parts to blame.
func (f *State) blame(t Subscription, v *compiled.View, r *xds.Resource, words string) {
	a := f.tables[r.Name]
	switch {
	case a != nil && !a.nack(words):
		c := f.giveUp(t, a)
		c.hash, c.Words, c.blame = a.target.Hash, words, true
		return
	case a == nil && t.TypeURL() == xds.RouteType:
		a = f.newPartial(t, v, f.byName[r.Name], r)
	}
	if a == nil {
		f.byName[r.Name].blame = true
		return
	}
	if f.tables == nil {
		f.tables = map[string]*partialRoutes{}
	}
	f.tables[r.Name] = a
	delete(f.byName, r.Name)
	f.addTrial(t, a)
}

// giveUp sends a table as it should be, or not at all.
func (f *State) giveUp(t Subscription, a *partialRoutes) *Nacked {
	name := a.target.Name
	c := &Nacked{View: a.from, needs: a.needs}
	if a.acked != nil {
		c.acked, c.table, c.View = a.acked.Resource, a.acked.table, cmp.Or(a.from, t.Acked().View)
	}
	delete(f.tables, name)
	if f.byName == nil {
		f.byName = map[string]*Nacked{}
	}
	f.byName[name] = c
	return c
}

// addTrial makes a table pending that the proxy has not acked.
func (f *State) addTrial(t Subscription, a *partialRoutes) {
	if !a.isAcked() {
		t.AddPending(a.target.Name)
	}
}

// Retarget updates the targets of partially sent tables, and notes which routes lead to
// clusters that the proxy refuses.
func (f *State) Retarget(t Subscription, to compiled.At, find func(string) *xds.Resource) {
	lacking := t.ClusterNacks().lacking(to.View)
	if t.TypeURL() == xds.ListenerType {
		f.holdListeners(t, to, lacking)
		return
	}
	for name, a := range f.tables {
		r, table := find(name), compiled.TableNamed(to.View, name)
		if r == nil || table == nil || !t.Wants(name) {
			delete(f.tables, name)
			continue
		}
		same := r.Hash == a.target.Hash
		switch {
		case same && slices.Equal(lacking, a.lacking):
		case !a.retarget(r, table, t.Acked().View, lacking):
			f.giveUp(t, a)
		case a.clean() && a.isAcked():
			// The table is sent at once, as if nothing had been nacked.
			delete(f.tables, name)
		case same:
			f.addTrial(t, a)
		}
	}
	f.holdRoutes(t, to, find, lacking)
}

// lastAckedTable returns the last table of a name that the proxy acked, or nil for none.
func (f *State) lastAckedTable(t Subscription, name string) *ackedTable {
	if a := f.tables[name]; a != nil {
		return a.acked
	}
	r, table := t.Acknowledged(name), compiled.TableNamed(t.Acked().View, name)
	if c := f.byName[name]; c != nil {
		r, table = c.acked, c.table
	}
	if r == nil {
		return nil
	}
	return &ackedTable{r, table}
}

// suspects are the resources of a response that the proxy has neither acked nor nacked
// before. explained reports whether the other resources explain the nack. If there is
// neither, the proxy rejects what it acked before.
func (f *State) suspects(t Subscription, s *Sent, tried bool) (suspects []*xds.Resource, explained bool) {
	explained = !tried && len(f.search) > 0
	for _, r := range s.Resources {
		c := f.byName[r.Name]
		switch {
		case c != nil && c.hash == r.Hash && !(tried && c.tried):
			explained = true
		case !Same(r, f.LastAcked(t, r.Name)):
			suspects = append(suspects, r)
		}
	}
	if len(suspects) == 0 && !explained && !t.Wild() {
		suspects = s.Resources
	}
	return suspects, explained
}

// LastAcked returns the last resource of a name that the proxy acked; nil for none.
func (f *State) LastAcked(t Subscription, name string) *xds.Resource {
	if a := f.tables[name]; a != nil {
		if a.acked == nil {
			return nil
		}
		return a.acked.Resource
	}
	if c := f.byName[name]; c != nil {
		return c.acked
	}
	return t.Acknowledged(name)
}

func Same(a, b *xds.Resource) bool { return a == b || a != nil && b != nil && a.Hash == b.Hash }

// aboutAll reports whether a nack concerns the whole set. There are two cases. The proxy
// never acked anything and does not name what is to blame, although for these types it
// would. Or, in the state of the world, the proxy came with something that is not known
// here, and leaving out what is to blame would withdraw that.
func (f *State) aboutAll(t Subscription, s *Sent, named bool) bool {
	if !t.Wild() || t.Acked().Set != nil {
		return false
	}
	if t.CameWithSomething() {
		return !s.Delta
	}
	return !named
}

// suspect holds a resource back.
func (f *State) suspect(t Subscription, r *xds.Resource, words string) {
	c := f.byName[r.Name]
	if c == nil {
		if f.byName == nil {
			f.byName = map[string]*Nacked{}
		}
		c = &Nacked{}
		if before := f.lastAckedTable(t, r.Name); before != nil {
			c.View = t.Acked().View
			if !Same(before.Resource, r) {
				c.acked, c.table = before.Resource, before.table
			}
		}
		f.byName[r.Name] = c
	}
	c.hash, c.Words, c.blame, c.tried = r.Hash, words, false, false
}

// again sends the suspects again that are not to blame.
func (f *State) again(t Subscription, suspects []*xds.Resource) {
	for _, r := range suspects {
		if c := f.byName[r.Name]; c != nil && !c.blame {
			c.tried = true
			t.AddPending(r.Name)
		}
	}
}

// namedIn returns the resources that an Envoy's words name. An Envoy names clusters and
// listeners. The name of a route table is a number, which may mean anything.
func (f *State) namedIn(t Subscription, words string, of []*xds.Resource) []*xds.Resource {
	if !t.Wild() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(of), func(r *xds.Resource) bool { return !mentions(words, r.Name) })
}

// mentions reports whether a text has the name as a word of its own.
func mentions(text, name string) bool {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		at += i
		if !endsInName(text[:at]) && !beginsInName(text[at+len(name):]) {
			return true
		}
	}
}

func endsInName(text string) bool { return text != "" && inName(text[len(text)-1]) }

// beginsInName reports whether a text begins with a character of a name. A full stop at the
// end belongs to the sentence.
func beginsInName(text string) bool {
	rest := strings.TrimLeft(text, ".")
	return rest != "" && inName(rest[0])
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-|=", c) >= 0
}

// maxWords bounds the length of the message of a nack that is kept. An Envoy cuts its own
// at 4,096.
const maxWords = 4 << 10

// kept returns the part of a proxy's message that problems and conditions show. It escapes
// characters that control a terminal.
func kept(words string) string { return cut(terminal.Escape(cut(words))) }

// cut ends a text after at most maxWords bytes, between two characters.
func cut(text string) string {
	if len(text) <= maxWords {
		return text
	}
	end := maxWords
	for end > maxWords-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// AckTable records that the proxy acked the partial table that it was sent.
func (f *State) AckTable(t Subscription, r *xds.Resource) {
	a := f.tables[r.Name]
	if a == nil || a.sent.Hash != r.Hash {
		return
	}
	if a.ack(); a.clean() {
		delete(f.tables, r.Name)
		return
	}
	f.addTrial(t, a)
}

// IsAll reports whether the proxy nacked the whole set, as far as is known.
func (f *State) IsAll(t Subscription, s *xds.Set) bool {
	return f.whole != nil && t.Alike(f.whole, s)
}

// ForgetAll records that something is sent after a whole set was nacked.
func (f *State) ForgetAll() { f.whole = nil }

// HasPartial reports whether a table is sent without some parts, and the proxy acked it in
// this form.
func (f *State) HasPartial(name string) bool {
	a := f.tables[name]
	return a != nil && a.isAcked()
}

// Searching reports whether the search for the resources to blame, or for the parts of a
// route table, is still going on.
func (f *State) Searching() bool {
	for _, c := range f.byName {
		if !c.blame {
			return true
		}
	}
	for _, a := range f.tables {
		if len(a.search) > 0 || !a.isAcked() {
			return true
		}
	}
	return len(f.search) > 0
}

// NothingNacked reports whether nothing is nacked, as for most proxies.
func (f *State) NothingNacked() bool { return f.whole == nil && len(f.byName)+len(f.tables) == 0 }
