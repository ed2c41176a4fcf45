package discovery

import (
	"weak"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Knows reports whether a proxy is remembered.
func (p *Publisher) Knows(node string) bool { return p.fleet.Find(mesh.Node{ID: node}) != nil }

// Snapshot is the mesh that is published, held by nothing of the test.
func (p *Publisher) Snapshot() weak.Pointer[mesh.Snapshot] {
	return weak.Make(p.encoder.Current.Load().Mesh)
}

// Compiler is what a Publisher compiles with.
type Compiler = compiler

// NewWith is New with compilers of the test's own.
func NewWith(opts Options, wrap func(Compiler) Compiler) *Publisher {
	s := New(opts)
	s.newCompiler = func() compiler { return wrap(compile.NewCompilerWithin(s.results)) }
	s.newBeside = func() compiler { return wrap(compile.NewCompilerBeside(s.results)) }
	s.compiler = s.newCompiler()
	return s
}

// Told is what identifies the view that a proxy is told, and its configuration.
func (p *Publisher) Told(node string) (view any, config *ir.Config, err error) {
	return p.ToldTo(mesh.Node{ID: node})
}

// AskV1 asks as an Envoy of v1 would that states more than its id, which none can.
func (p *Publisher) AskV1(node Node) error {
	_, _, err := p.v1(node)
	return err
}

// ToldTo is Told for a proxy that states more than its id.
func (p *Publisher) ToldTo(node Node) (view any, config *ir.Config, err error) {
	state, _, err := p.locate(node)
	if err != nil {
		return nil, nil, err
	}
	return state.View, state.View.Config, nil
}

// Contents are how many different responses streams are on the way to tell.
func (p *Publisher) Contents() int { return p.streams.Contents.Len() }

// DuringPoll does something while a poll of a known proxy is being answered.
func (p *Publisher) DuringPoll(node string, do func()) {
	c := p.fleet.Find(mesh.Node{ID: node})
	c.Transition.Hold(do)
}

// CheckNow is Check whatever it takes.
func (p *Publisher) CheckNow(w Written) diag.List {
	problems, _ := p.checks.look(w, func() {})
	return problems
}

// Messages is how many messages were encoded for answers so far.
func (p *Publisher) Messages() int64 { return p.encoder.V3.Encoded.Load() }

// Occupy keeps publications waiting until the returned function is called.
func (p *Publisher) Occupy() (done func()) { return p.advancing() }
