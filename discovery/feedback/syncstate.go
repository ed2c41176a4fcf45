package feedback

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// ProxySyncState is the progress of one stream, or of one polling proxy, at one moment.
type ProxySyncState struct {
	Transport Transport
	State     SyncState      // the worst of its types
	View      *compiled.View // that it should have
	At        *compiled.View // that it has, nil when that is not known
	Revision  int64          // that it runs; over v1, that it has fetched
	Away      bool           // it was lost a short while ago, and is awaited
}

// SyncVisitor receives details that a ProxySyncState does not have. Either function may be
// nil.
type SyncVisitor struct {
	Refusal func(diag.Ref, Refusal)
	State   func(name string, s TypeStatus) // called with each state of a type; a type may have several
}

// Note adds the state of a type.
func (s *ProxySyncState) Note(r SyncVisitor, name string, t TypeStatus) {
	s.State = Worse(s.State, t.State)
	if r.State != nil {
		r.State(name, t)
	}
}

// Subjects are the objects that a request is about; the zero Subjects are none.
type Subjects struct {
	refs   []diag.Ref
	hosts  []string     // of which they are instances
	former []formerHost // of which they were
}

// Subjects returns objects together with the services that they are or were instances of.
func (w Workloads) Subjects(refs []diag.Ref) Subjects {
	out := Subjects{refs: refs}
	for _, ref := range refs {
		out.hosts = append(out.hosts, w.hosts[ref]...)
		out.former = append(out.former, w.former[ref]...)
	}
	return out
}

// None reports whether there are no objects.
func (s Subjects) None() bool { return len(s.refs) == 0 }

// Concerns reports whether the configuration that the proxy has, or should have, contains
// one of the subjects.
func (s *ProxySyncState) Concerns(of Subjects) bool {
	for _, v := range []*compiled.View{s.View, s.At} {
		if v == nil {
			continue
		}
		if slices.ContainsFunc(of.refs, func(ref diag.Ref) bool { _, is := v.Origins()[ref]; return is }) {
			return true
		}
		has := func(host string) bool { _, is := v.Hosts()[host]; return is }
		if slices.ContainsFunc(of.hosts, has) || slices.ContainsFunc(of.former, func(f formerHost) bool { return s.Revision < f.until && has(f.host) }) {
			return true
		}
	}
	return false
}

func withheldWords(s *ir.Secret) string { return s.Name + ": " + ErrWithheld.Error() }

// NoteWithheld adds the state of secrets that are not sent.
func (s *ProxySyncState) NoteWithheld(r SyncVisitor, withheld []*ir.Secret) {
	if len(withheld) > 0 {
		s.Note(r, xds.NameOf(xds.SecretType), TypeStatus{State: Rejected, Error: withheldWords(withheld[0])})
	}
}
