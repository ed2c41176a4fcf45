package discovery

import (
	"weak"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Knows reports whether a proxy is remembered.
func (s *Publisher) Knows(node string) bool { return s.fleet.Find(mesh.Node{ID: node}) != nil }

// Snapshot is the mesh that is published, held by nothing of the test.
func (s *Publisher) Snapshot() weak.Pointer[mesh.Snapshot] {
	return weak.Make(s.encoder.Current.Load().Mesh)
}

// Compiler is what a Publisher compiles with.
type Compiler = compiler

// NewWith is New with compilers of the test's own.
func NewWith(opts Options, wrap func(Compiler) Compiler) *Publisher {
	s := New(opts)
	s.newCompiler = func() compiler { return wrap(compile.NewCompilerWithin(s.results)) }
	s.compiler = s.newCompiler()
	return s
}

// Told is what identifies the view that a proxy is told, and its configuration.
func (s *Publisher) Told(node string) (view any, config *ir.Config, err error) {
	return s.ToldTo(mesh.Node{ID: node})
}

// AskV1 asks as an Envoy of v1 would that states more than its id, which none can.
func (s *Publisher) AskV1(node Node) error {
	_, _, err := s.v1(node)
	return err
}

// ToldTo is Told for a proxy that states more than its id.
func (s *Publisher) ToldTo(node Node) (view any, config *ir.Config, err error) {
	p, _, err := s.locate(node)
	if err != nil {
		return nil, nil, err
	}
	return p.View, p.View.Config, nil
}

// Contents are how many different responses streams are on the way to tell.
func (s *Publisher) Contents() int { return s.streams.Contents.Len() }

// DuringPoll does something while a poll of a known proxy is being answered.
func (s *Publisher) DuringPoll(node string, do func()) {
	c := s.fleet.Find(mesh.Node{ID: node})
	c.Transition.Hold(do)
}

// CheckNow is Check whatever it takes.
func (s *Publisher) CheckNow(w Written) diag.List {
	problems, _ := s.checks.look(w, func() {})
	return problems
}
