package poll

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// shown is a type of which a proxy polls each resource by itself: endpoints and secrets.
// It keeps two bits for each resource that the proxy should have.
type shown struct {
	asked     bool     // the proxy has polled something of the type
	resources *xds.Set // that it should have
	// has are the resources whose present version was in the last poll for them, and
	// answered those whose present version was an answer. They are by index in of.
	has, answered bits
	without       int // how many it has not shown to have

	over        passing // of one resource that it passes over
	overSubject string  // its name, "" for none
}

// note takes in a poll for some names, with the version that it carries and that of what
// there is now. find returns the present resource of a name, nil for none.
func (s *shown) note(of *xds.Set, names []string, version, answer string, find func(string) *xds.Resource) {
	s.asked = true
	s.follow(of)
	for _, name := range names {
		i, known := slices.BinarySearchFunc(of.Sorted, name, byName)
		if !known {
			continue
		}
		r := find(name)
		present := r != nil && r.Hash == of.Sorted[i].Hash
		s.set(i, present && version == answer, present)
		if len(names) == 1 {
			s.notePassing(name, version, answer)
		}
	}
}

func byName(r *xds.Resource, name string) int { return strings.Compare(r.Name, name) }

func (s *shown) set(i int, has, answered bool) {
	if s.has.get(i) != has {
		if s.without++; has {
			s.without -= 2
		}
	}
	s.has.set(i, has)
	s.answered.set(i, answered)
}

// notePassing follows the first resource that the proxy passes over.
func (s *shown) notePassing(name, version, answer string) {
	if s.overSubject != "" && s.overSubject != name {
		return
	}
	s.over.note(version, answer)
	if s.overSubject = name; version == answer {
		s.overSubject, s.over = "", passing{}
	}
}

// follow makes another set the one that the proxy should have. Resources that are the same
// in both sets stay shown.
func (s *shown) follow(of *xds.Set) {
	if s.resources == of {
		return
	}
	before := *s
	s.resources, s.has, s.answered, s.without = of, newBits(len(of.Sorted)), newBits(len(of.Sorted)), len(of.Sorted)
	if _, is := slices.BinarySearchFunc(of.Sorted, s.overSubject, byName); !is {
		s.overSubject, s.over = "", passing{}
	}
	if before.resources == nil {
		return
	}
	old := before.resources.Sorted
	at := 0
	for i, r := range of.Sorted {
		for at < len(old) && old[at].Name < r.Name {
			at++
		}
		if at < len(old) && old[at].Name == r.Name && old[at].Hash == r.Hash {
			s.set(i, before.has.get(at), before.answered.get(at))
		}
	}
}

// status returns the proxy's sync state for a set that it should have.
func (s *shown) status(of *xds.Set) feedback.TypeStatus {
	s.follow(of)
	switch {
	case s.over.refused():
		out := s.over.status(true)
		out.Error = s.overSubject + ": " + out.Error
		return out
	case s.without == 0:
		return feedback.TypeStatus{State: feedback.Synced}
	case s.answered.all(len(of.Sorted)):
		return feedback.TypeStatus{State: feedback.Sent}
	}
	return feedback.TypeStatus{State: feedback.Stale}
}

// bits are a set of small numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) get(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bits) set(i int, to bool) {
	if b[i/64] &^= 1 << (i % 64); to {
		b[i/64] |= 1 << (i % 64)
	}
}

// all reports whether all numbers below n are in it.
func (b bits) all(n int) bool {
	for i := range n {
		if !b.get(i) {
			return false
		}
	}
	return true
}
