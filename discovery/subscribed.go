package discovery

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// subscribed is one type on a stream: what the proxy asks for, what it was sent
// and what it has acknowledged.
type subscribed struct {
	typeURL string
	asked   bool
	all     bool // a wildcard: everything, whatever it is called
	named   names

	newest   string          // nonce of the last response
	underway []*sending      // responses that are not answered yet, oldest first
	sent     at              // what the last response led to
	good     at              // the last that was acknowledged with nothing refused
	owed     map[string]bool // to be sent even if it is what was sent
	refused  map[string]refusedContent
	groups   [][]*resource // of one refused response, of which some are to blame

	came came
}

// at is a set, and the view that it is of.
type at struct {
	set  *set
	view *view
}

func (a at) named(name string) *resource {
	if a.set == nil {
		return nil
	}
	return a.set.named(name)
}

// sending is a response on its way.
type sending struct {
	nonce string
	at
	resources []*resource // that differ, as far as is known
	adds      bool        // clusters that the proxy may not have
	since     time.Time
}

// refusedContent is what a proxy does not take, and why.
type refusedContent struct {
	hash  digest
	words string
}

// came is what a proxy says it has as it comes.
type came struct {
	version  string            // state of the world
	versions map[string]string // delta, by name
	gone     []string          // those of them that nobody has any more, not yet withdrawn
}

const wildcard = "*"

// wild reports whether no names mean all, as they do for the types that nothing
// else names.
func (t *subscribed) wild() bool { return t.typeURL == ClusterType || t.typeURL == ListenerType }

// answered takes the answer to a response in, and reports whether the request
// knows of all that was sent.
func (t *subscribed) answered(r Request) (current bool, err error) {
	if r.Nonce == "" {
		return true, nil
	}
	i := slices.IndexFunc(t.underway, func(s *sending) bool { return s.nonce == r.Nonce })
	if i >= 0 {
		s := t.underway[i]
		t.underway = slices.Delete(t.underway, 0, i+1)
		if r.Refused == nil {
			t.accept(s)
		} else {
			t.refuse(s, *r.Refused)
		}
	}
	return r.Nonce == t.newest, nil
}

func (t *subscribed) accept(s *sending) {
	if len(t.groups) > 0 {
		t.groups = t.groups[1:]
	}
	if len(t.refused) == 0 && len(t.groups) == 0 {
		t.good = s.at
	}
}

// subscribeTo takes the names of a state-of-the-world client, which are all that
// it wants.
func (t *subscribed) subscribeTo(r Request) {
	first := !t.asked
	if t.asked = true; first {
		t.came.version = r.Version
	}
	all := slices.Contains(r.Names, wildcard)
	if all {
		r.Names = slices.DeleteFunc(slices.Clone(r.Names), func(n string) bool { return n == wildcard })
	}
	// Nothing named means everything until something was.
	if len(r.Names) == 0 && t.wild() && (first || t.all && t.named.len() == 0) {
		all = true
	}
	if all && !t.all {
		t.owe(wildcard)
	}
	t.all = all
	if t.named.are(r.Names) {
		return
	}
	before := t.named
	t.named = names{}
	for _, n := range r.Names {
		t.named.add(n)
		if !before.has(n) {
			t.owe(n)
		}
	}
}

// subscribeDelta takes the changes of a delta client.
func (t *subscribed) subscribeDelta(r Request) {
	if !t.asked {
		t.came.versions = r.Initial
		t.all = t.wild() && len(r.Subscribe) == 0
	}
	if !t.asked && t.all {
		t.owe(wildcard)
	}
	t.asked = true
	for _, n := range r.Unsubscribe {
		if n == wildcard {
			t.all = false
			continue
		}
		t.named.remove(n)
		delete(t.owed, n)
		if t.all {
			t.owe(n)
		}
	}
	for _, n := range r.Subscribe {
		if n == wildcard {
			t.all = true
		} else {
			t.named.add(n)
		}
		t.owe(n)
	}
}

// owe has something sent even if the proxy was sent it; the wildcard stands for
// an answer, whatever is in it.
func (t *subscribed) owe(name string) {
	if t.owed == nil {
		t.owed = map[string]bool{}
	}
	t.owed[name] = true
}

func (t *subscribed) wants(name string) bool { return t.all || t.named.has(name) }

// reconcile takes what a proxy said it has as if it had been sent.
func (t *subscribed) reconcile(to at, find func(string) *resource) {
	if t.sent.set == nil && t.all && t.came.version != "" && t.came.version == to.set.version {
		t.sent = to
		delete(t.owed, wildcard)
	}
	has := t.came.versions
	t.came.versions = nil
	if len(has) == 0 {
		return
	}
	t.sent = to
	for name, version := range has {
		r := find(name)
		switch {
		case r != nil && r.hash.version() == version:
			delete(t.owed, name)
		case r != nil:
			t.owe(name)
		default:
			t.came.gone = append(t.came.gone, name)
		}
	}
	slices.Sort(t.came.gone)
	for _, r := range to.set.sorted {
		if _, ok := has[r.name]; !ok && t.all {
			t.owe(r.name)
		}
	}
}

// takes is the set with what the proxy has accepted last in the place of what it
// refuses.
func (t *subscribed) takes(desired *set) *set {
	t.forgive(desired)
	if len(t.refused) == 0 && len(t.groups) < 2 {
		return desired
	}
	out := &set{typeURL: desired.typeURL, sorted: make([]*resource, 0, len(desired.sorted))}
	for _, r := range desired.sorted {
		if t.holds(r) {
			r = t.good.named(r.name)
		}
		if r != nil {
			out.sorted = append(out.sorted, r)
		}
	}
	out.version = versionOf(nil, out.sorted)
	return out
}

// holds reports whether a resource is not to be sent now.
func (t *subscribed) holds(r *resource) bool {
	if f, ok := t.refused[r.name]; ok && f.hash == r.hash {
		return true
	}
	for _, group := range t.groups[min(1, len(t.groups)):] {
		if slices.ContainsFunc(group, func(other *resource) bool { return other.name == r.name && other.hash == r.hash }) {
			return true
		}
	}
	return false
}

// forgive forgets what was refused of which there is another version, or none.
func (t *subscribed) forgive(desired *set) {
	maps.DeleteFunc(t.refused, func(name string, f refusedContent) bool {
		r := desired.named(name)
		return r == nil || r.hash != f.hash
	})
}

// refuse finds out what of a response is to blame. All of it counts as unknown:
// what the proxy took of it nobody says.
func (t *subscribed) refuse(s *sending, words string) {
	for _, r := range s.resources {
		t.owe(r.name)
	}
	suspects := s.resources
	blamed := t.namedIn(words, suspects)
	if len(t.groups) > 0 {
		t.groups = t.groups[1:]
	}
	switch {
	case len(blamed) == 0 && len(suspects) > 1:
		// One half after the other: the words name none.
		half := len(suspects) / 2
		t.groups = slices.Insert(t.groups, 0, suspects[:half:half], suspects[half:])
		return
	case len(blamed) == 0:
		blamed = suspects
	}
	for _, r := range blamed {
		if t.refused == nil {
			t.refused = map[string]refusedContent{}
		}
		t.refused[r.name] = refusedContent{r.hash, bounded(words)}
	}
}

// namedIn are the resources that an Envoy's words name. It names clusters and
// listeners; a route table has a number for a name, which may mean anything.
func (t *subscribed) namedIn(words string, of []*resource) []*resource {
	var out []*resource
	for _, r := range of {
		if t.wild() && mentions(words, r.name) {
			out = append(out, r)
		}
	}
	return out
}

// mentions reports whether a text has the name as a word of its own.
func mentions(text, name string) bool {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(name)
		if (at == 0 || !inName(text[at-1])) && (end == len(text) || !inName(text[end])) {
			return true
		}
	}
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-|", c) >= 0
}

// maxWords bounds what is kept of a refusal; an Envoy cuts its own at 4,096.
const maxWords = 4 << 10

func bounded(words string) string { return words[:min(len(words), maxWords)] }
