package discovery

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/poll"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/ir"
)

// refusals are what a proxy does not take of one type. What it has refused is not
// sent again until there is another version of it.
//
// Who is to blame for a refused response is mostly known by its words. Where these
// name nobody, it is searched by halves: one is sent after the other, and again its
// halves, until one is refused that is a single resource.
type refusals struct {
	of map[string]*refusedContent // by name
	// tables are the route tables that are told without what is refused of them.
	tables map[string]*amended
	// search are the halves that are to be sent. The first is on trial, and the
	// others wait.
	search [][]*xds.Resource
	trial  string // nonce of the response with the first; "" before it is sent
	// whole is a set of which the proxy refused everything, as far as is known. The next
	// change says everything again.
	whole      *xds.Set
	wholeWords string
	// unclear are the views that refused responses led to: what the proxy took of
	// them nobody says.
	unclear []*compiled.View
}

// refusedContent is what a proxy does not take, or what is suspected of that.
type refusedContent struct {
	hash    xds.Digest
	words   string         // the proxy's
	blame   bool           // it is to blame, and not a suspect
	tried   bool           // it is sent again, as it may be innocent
	kept    *xds.Resource  // what the proxy took before, nil for nothing that is known
	table   *ir.RouteTable // that this is, of a route table
	view    *compiled.View // that this is of
	needs   *compiled.View // clusters that it leads to besides
	origins []diag.Ref     // that are to blame; nil where all of it is
}

func (f *refusals) none() bool { return len(f.of) == 0 && len(f.tables) == 0 && len(f.unclear) == 0 }

// amended is the resource as the proxy is to be told it.
func (f *refusals) amended(r *xds.Resource) *xds.Resource {
	if r != nil && f.tables[r.Name] != nil {
		return f.tables[r.Name].told.Resource
	}
	return r
}

// holds reports whether a resource is not to be sent.
func (f *refusals) holds(r *xds.Resource) bool {
	c := f.of[r.Name]
	return c != nil && c.hash == r.Hash && !c.tried
}

// instead is what is told in the place of a resource: what the proxy took before
// where it refuses this one; nil if it took nothing.
func (f *refusals) instead(r *xds.Resource) *xds.Resource {
	if r = f.amended(r); r != nil && f.holds(r) {
		return f.of[r.Name].kept
	}
	return r
}

// lacks reports whether the proxy may have nothing of the name, as it refused what
// it was sent.
func (f *refusals) lacks(name string) bool {
	c := f.of[name]
	return c != nil && c.kept == nil
}

func (f *refusals) maybeAt(visit func(*compiled.View)) {
	for _, c := range f.of {
		visit(c.view)
		visit(c.needs)
	}
	for _, a := range f.tables {
		visit(a.from)
		visit(a.needs)
	}
	for _, v := range f.unclear {
		visit(v)
	}
}

// doubt notes that the proxy may be at a view that it refused. Of endless ones the
// last few are enough.
func (f *refusals) doubt(v *compiled.View) {
	if slices.Contains(f.unclear, v) {
		return
	}
	if len(f.unclear) == poll.MaxHeld {
		f.unclear = f.unclear[1:]
	}
	f.unclear = append(f.unclear, v)
}

// sent notes which response has those on trial.
func (f *refusals) sent(nonce string) {
	if len(f.search) > 0 && f.trial == "" {
		f.trial = nonce
	}
}

// forget lets go of what is not wanted any more.
func (f *refusals) forget(wanted func(name string) bool) {
	maps.DeleteFunc(f.of, func(name string, _ *refusedContent) bool { return !wanted(name) })
	maps.DeleteFunc(f.tables, func(name string, _ *amended) bool { return !wanted(name) })
}

// rest takes in that there is nothing to be sent: where nothing is refused, the proxy
// has taken all that it wants.
func (f *refusals) rest() {
	if len(f.of) == 0 && len(f.tables) == 0 && len(f.search) == 0 {
		f.unclear = nil
	}
}

// concluded reports whether a trial ends with the answer to a response.
func (f *refusals) concluded(nonce string) bool {
	if f.trial == "" || f.trial != nonce {
		return false
	}
	f.search, f.trial = f.search[1:], ""
	return true
}

// next are those to be sent, if nobody is on trial.
func (f *refusals) next() []*xds.Resource {
	if len(f.search) == 0 || f.trial != "" {
		return nil
	}
	for _, r := range f.search[0] {
		f.of[r.Name].tried = true
	}
	return f.search[0]
}

// accepted takes in that the proxy took a response, or that it may go on to another
// version of what it refuses.
func (f *refusals) accepted(s *sending) {
	f.concluded(s.nonce)
	if len(f.search) == 0 {
		f.unclear = nil
	}
	for _, r := range s.Resources {
		if c := f.of[r.Name]; c != nil && c.hash == r.Hash {
			delete(f.of, r.Name)
		}
	}
	for name, c := range f.of {
		if r := f.amended(s.Named(name)); r == nil || r.Hash != c.hash {
			delete(f.of, name)
		}
	}
}

// revise takes out of the search what is not what it was.
func (f *refusals) revise(find func(string) *xds.Resource) {
	if len(f.search) == 0 || f.trial != "" {
		return
	}
	other := func(r *xds.Resource) bool {
		now := f.amended(find(r.Name))
		return now == nil || now.Hash != r.Hash || f.of[r.Name] == nil
	}
	for i, half := range f.search {
		f.search[i] = slices.DeleteFunc(slices.Clone(half), other)
	}
	f.search = slices.DeleteFunc(f.search, func(half []*xds.Resource) bool { return len(half) == 0 })
}

// refuse finds out what of a response is to blame, and has the rest sent again: what
// the proxy took of it is not known.
func (t *subscribed) refuse(s *sending, words string) {
	f := &t.refusals
	f.doubt(s.View)
	// A slice of them would keep all of them.
	words = strings.Clone(kept(words))
	tried := f.concluded(s.nonce)
	suspects, explained := t.suspects(s, tried)
	if len(suspects) == 0 {
		if explained {
			t.withdrawAgain(s)
		}
		return
	}
	blamed := t.namedIn(words, suspects)
	if t.aboutAll(s, len(blamed) > 0) {
		f.whole, f.wholeWords, t.sent = s.Set, words, compiled.At{}
		return
	}
	if len(blamed) == 0 && !explained && len(suspects) == 1 {
		blamed = suspects
	}
	for _, r := range suspects {
		t.suspect(r, words)
	}
	for _, r := range blamed {
		t.blame(s.View, r, words)
	}
	if len(blamed) == 0 && !explained {
		half := len(suspects) / 2
		f.search = slices.Insert(f.search, 0, suspects[:half:half], suspects[half:])
	} else {
		t.again(suspects)
	}
	t.withdrawAgain(s)
}

// withdrawAgain has the proxy told again of what a refused response left out.
func (t *subscribed) withdrawAgain(s *sending) {
	for _, name := range s.Removed {
		if !t.refusals.lacks(name) {
			t.owed.add(name)
		}
	}
	if !s.Delta && t.wild() && slices.ContainsFunc(s.Set.Since(t.good.Set).Removed, t.wants) {
		t.owed.answer = true
	}
}

// refused is what the proxy refuses of a set, in order of names; under "" when that is
// all of it.
func (t *subscribed) refused(desired *xds.Set) iter.Seq2[string, *refusedContent] {
	return func(yield func(string, *refusedContent) bool) {
		f := &t.refusals
		if f.whole != nil && t.alike(f.whole, desired) && !yield("", &refusedContent{words: f.wholeWords, blame: true}) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(f.of)) {
			c, r := f.of[name], desired.Named(name)
			if c.blame && r != nil && r.Hash == c.hash && !yield(name, c) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f.tables)) {
			a, r := f.tables[name], desired.Named(name)
			if r != nil && r.Hash == a.target.Hash && !a.blamed(func(c *refusedContent) bool { return yield(name, c) }) {
				return
			}
		}
	}
}

// blame takes in that a resource is not taken as it was sent. Of a route table it goes
// on to find out what of it.
func (t *subscribed) blame(v *compiled.View, r *xds.Resource, words string) {
	f := &t.refusals
	a := f.tables[r.Name]
	switch {
	case a != nil && !a.refused(words):
		c := t.giveUp(a)
		c.hash, c.words, c.blame = a.target.Hash, words, true
		return
	case a == nil && t.typeURL == xds.RouteType:
		a = t.amend(v, f.of[r.Name], r)
	}
	if a == nil {
		f.of[r.Name].blame = true
		return
	}
	if f.tables == nil {
		f.tables = map[string]*amended{}
	}
	f.tables[r.Name] = a
	delete(f.of, r.Name)
	t.oweTrial(a)
}

// giveUp has a table told as it should be, or not at all.
func (t *subscribed) giveUp(a *amended) *refusedContent {
	f, name := &t.refusals, a.target.Name
	c := &refusedContent{view: a.from, needs: a.needs}
	if a.kept != nil {
		c.kept, c.table, c.view = a.kept.Resource, a.kept.table, cmp.Or(a.from, t.good.View)
	}
	delete(f.tables, name)
	if f.of == nil {
		f.of = map[string]*refusedContent{}
	}
	f.of[name] = c
	return c
}

// oweTrial has the proxy told a table that it has not got.
func (t *subscribed) oweTrial(a *amended) {
	if !a.isTaken() {
		t.owed.add(a.target.Name)
	}
}

// aim takes in what the route tables should be that are told without parts.
func (t *subscribed) aim(to compiled.At, find func(string) *xds.Resource) {
	for name, a := range t.refusals.tables {
		r, table := find(name), compiled.TableNamed(to.View, name)
		switch {
		case r == nil || table == nil || !t.wants(name):
			delete(t.refusals.tables, name)
		case r.Hash == a.target.Hash:
		case !a.aim(r, table, t.good.View):
			t.giveUp(a)
		case a.clean() && a.isTaken():
			// It is told at once, as if nothing had been.
			delete(t.refusals.tables, name)
		}
	}
}

// tableTaken is the last of a name that the proxy acknowledged; nil for none.
func (t *subscribed) tableTaken(name string) *tableTaken {
	if a := t.refusals.tables[name]; a != nil {
		return a.kept
	}
	r, table := t.acknowledged(name), compiled.TableNamed(t.good.View, name)
	if c := t.refusals.of[name]; c != nil {
		r, table = c.kept, c.table
	}
	if r == nil {
		return nil
	}
	return &tableTaken{r, table}
}

// suspects are what the proxy has neither taken nor refused before. What else the
// response had may explain why it was refused. If there is neither, it does not take any
// more what it took.
func (t *subscribed) suspects(s *sending, tried bool) (suspects []*xds.Resource, explained bool) {
	explained = !tried && len(t.refusals.search) > 0
	for _, r := range s.Resources {
		c := t.refusals.of[r.Name]
		switch {
		case c != nil && c.hash == r.Hash && !(tried && c.tried):
			explained = true
		case !same(r, t.taken(r.Name)):
			suspects = append(suspects, r)
		}
	}
	if len(suspects) == 0 && !explained && !t.wild() {
		suspects = s.Resources
	}
	return suspects, explained
}

// taken is the last of a name that the proxy acknowledged; nil for none.
func (t *subscribed) taken(name string) *xds.Resource {
	if a := t.refusals.tables[name]; a != nil {
		if a.kept == nil {
			return nil
		}
		return a.kept.Resource
	}
	if c := t.refusals.of[name]; c != nil {
		return c.kept
	}
	return t.acknowledged(name)
}

// acknowledged is taken for a name of which nothing is refused.
func (t *subscribed) acknowledged(name string) *xds.Resource {
	if t.fresh.has(name) {
		return nil
	}
	return t.good.Named(name)
}

func same(a, b *xds.Resource) bool { return a == b || a != nil && b != nil && a.Hash == b.Hash }

// aboutAll reports whether a refusal is one of everything. It is so where the proxy
// never took anything and does not say what is to blame, although of these types it
// would; and where in the state of the world it came with something that is not known
// here: to leave out what is to blame would withdraw what it has.
func (t *subscribed) aboutAll(s *sending, named bool) bool {
	if !t.wild() || t.good.Set != nil {
		return false
	}
	if t.came.before {
		return !s.Delta
	}
	return !named
}

// suspect holds a resource back.
func (t *subscribed) suspect(r *xds.Resource, words string) {
	f := &t.refusals
	c := f.of[r.Name]
	if c == nil {
		if f.of == nil {
			f.of = map[string]*refusedContent{}
		}
		c = &refusedContent{}
		if before := t.tableTaken(r.Name); before != nil {
			c.view = t.good.View
			if !same(before.Resource, r) {
				c.kept, c.table = before.Resource, before.table
			}
		}
		f.of[r.Name] = c
	}
	c.hash, c.words, c.blame, c.tried = r.Hash, words, false, false
}

// again has those sent again of whom nothing is known.
func (t *subscribed) again(suspects []*xds.Resource) {
	for _, r := range suspects {
		if c := t.refusals.of[r.Name]; c != nil && !c.blame {
			c.tried = true
			t.owed.add(r.Name)
		}
	}
}

// namedIn are the resources that an Envoy's words name. It names clusters and
// listeners; a route table has a number for a name, which may mean anything.
func (t *subscribed) namedIn(words string, of []*xds.Resource) []*xds.Resource {
	if !t.wild() {
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

// beginsInName: a full stop belongs to the sentence.
func beginsInName(text string) bool {
	rest := strings.TrimLeft(text, ".")
	return rest != "" && inName(rest[0])
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-|=", c) >= 0
}

// maxWords bounds what is kept of a refusal; an Envoy cuts its own at 4,096.
const maxWords = 4 << 10

// kept is the part of a proxy's words that problems and conditions show. Characters
// that steer a terminal are escaped.
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
