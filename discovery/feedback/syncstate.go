package feedback

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/ir"
)

// ProxySyncState is how far one stream, or one proxy that polls, has got at one moment.
type ProxySyncState struct {
	Transport Transport
	State     SyncState      // the worst of its types
	View      *compiled.View // that it should have
	At        *compiled.View // that it has, nil when that is not known
	Revision  int64          // that it runs
}

// SyncVisitor visits what is known beside it; either may be nil.
type SyncVisitor struct {
	Refusal func(diag.Ref, Refusal)
	State   func(name string, s TypeStatus) // of a type, which may be several times
}

// Note takes in the state of a type.
func (s *ProxySyncState) Note(r SyncVisitor, name string, t TypeStatus) {
	s.State = Worse(s.State, t.State)
	if r.State != nil {
		r.State(name, t)
	}
}

// Concerns reports whether some objects are in what the proxy has, or should have.
func (s *ProxySyncState) Concerns(of []diag.Ref) bool {
	for _, v := range []*compiled.View{s.View, s.At} {
		if v != nil && slices.ContainsFunc(of, func(ref diag.Ref) bool { _, is := v.Origins()[ref]; return is }) {
			return true
		}
	}
	return false
}

func withheldWords(s *ir.Secret) string { return s.Name + ": " + ErrWithheld.Error() }

// NoteWithheld takes in the state of secrets that are not sent.
func (s *ProxySyncState) NoteWithheld(r SyncVisitor, withheld []*ir.Secret) {
	if len(withheld) > 0 {
		s.Note(r, xds.NameOf(xds.SecretType), TypeStatus{State: Rejected, Error: withheldWords(withheld[0])})
	}
}
