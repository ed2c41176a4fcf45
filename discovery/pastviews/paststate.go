package pastviews

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// pastState is one state of the past, with the views that were asked for. It is compiled
// apart from what holds now, and only while that leaves room for it.
type pastState struct {
	past     *Recorder
	snapshot func() *mesh.Snapshot
	// sinceStart is set for a state since the start of the server.
	sinceStart bool

	mu    sync.Mutex
	made  *stateViews // nil before somebody asks, and while there is no room
	tried time.Time   // when there was none
}

// stateViews are the views of one state. Each keeps the compiler in memory that it comes
// from, so what they take is counted as long as a proxy may be at one of them.
type stateViews struct {
	*compiled.Generation
	compiler Compiler
	views    map[string]*compiled.View
}

// retryAfter is how long a state is not compiled again for which there was no room.
const retryAfter = 10 * time.Second

var (
	errNoRoom = errors.New("there was no room for this state of the past")
	errNoTime = errors.New("there is no time for this state of the past")
)

// viewOf is shared by all with the same key. Of those it keeps no more than there may be
// views now.
func (s *pastState) viewOf(proxy mesh.Proxy) (v *compiled.View, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made != nil {
		if v := s.made.views[s.made.Mesh.TraitsOf(proxy).Key()]; v != nil {
			return v, nil
		}
	}
	if s.sinceStart {
		if !s.past.hasTime() {
			return nil, errNoTime
		}
		defer s.past.spend(time.Now())
	}
	if s.made == nil {
		if !s.tried.IsZero() && time.Since(s.tried) < retryAfter {
			return nil, errNoRoom
		}
		if s.made, err = s.past.compile(s.snapshot); err != nil {
			s.made, s.tried = nil, time.Now()
			return nil, err
		}
	}
	v, err = s.past.viewOf(s.made, proxy)
	if err != nil && len(s.made.views) == 0 {
		s.made.compiler.Close()
		s.made, s.tried = nil, time.Now()
	}
	return v, err
}

// drop lets go of the views, unless one is being compiled. Those that a proxy may be at
// stay with it.
func (s *pastState) drop() {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		s.made = nil
	}
}

// hasTime reports whether any time is left to compile states since the start.
func (p *Recorder) hasTime() bool { return p.time.Tokens() > 0 }

// spend takes off the time since began.
func (p *Recorder) spend(began time.Time) {
	now := time.Now()
	p.time.ReserveN(now, int(min(now.Sub(began), savings)))
}

func (p *Recorder) compile(snapshot func() *mesh.Snapshot) (made *stateViews, err error) {
	err = p.Encoder.Contain("mesh of the past", func() error {
		g := compiled.NewGeneration(p.Encoder, snapshot(), nil)
		made = &stateViews{Generation: g, compiler: p.NewCompiler(), views: map[string]*compiled.View{}}
		made.compiler.Advance(g.Mesh)
		return nil
	})
	return made, err
}

func (p *Recorder) viewOf(made *stateViews, proxy mesh.Proxy) (*compiled.View, error) {
	traits := made.Mesh.TraitsOf(proxy)
	key := traits.Key()
	var config *ir.Config
	err := p.Encoder.Contain("compile", func() (err error) {
		config, _, err = made.compiler.ProxyWithin(context.Background(), traits)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("compile the past: %w", err)
	}
	v := compiled.NewView(made.Generation, key, config)
	if v.Past = made.compiler; len(made.views) >= p.MaxViews {
		made.compiler.Release(key, func() bool { return false })
		return v, nil
	}
	made.views[key] = v
	return v, nil
}
