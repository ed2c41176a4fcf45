package discovery

import (
	"fmt"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// view is what all proxies with one mesh.View.Key are told. Each Envoy version
// is spelled when the first proxy asks for it.
type view struct {
	// Not the generation: a view that stays as the last good one must not
	// keep all the rest of its time in memory.
	server   *Publisher
	pool     *pool
	serial   int64 // of the generation it was compiled for
	config   *ir.Config
	compiled diag.List

	v1 lazy[v1Answers]
	v3 lazy[v3Answers]
}

// compileView compiles, and closes what must not be served as it is. The error is
// a mistake of ours.
func (g *generation) compileView(mv mesh.View) (*view, error) {
	start := time.Now()
	v := &view{server: g.server, pool: g.pool, serial: g.serial}
	err := g.server.recoverPanic("compile", func() error {
		config, compiled := compile.Proxy(g.mesh, mv)
		sound, closed := ir.Close(config)
		v.config, v.compiled = sound, append(compiled, closed...)
		return nil
	})
	g.server.metrics.compile.Observe(time.Since(start).Seconds())
	if err != nil {
		return nil, fmt.Errorf("compile for role %s in %s: %w", mv.Role, mv.Domain, err)
	}
	return v, nil
}

// address is the one that listeners are spelled for: none where all of them are
// the same for every proxy. It differs only beside workloads, whose addresses
// the registry knows, so that invented ones take no memory.
func (v *view) address(ip string) string {
	if slices.ContainsFunc(v.config.Listeners, func(l *ir.Listener) bool { return l.IP == "" }) {
		return ip
	}
	return ""
}

// prepare spells ahead what a proxy is known to ask for.
func (v *view) prepare(c *client) error {
	if c.usesV1.Load() {
		if _, err := v.encodedV1(c.proxy.IP); err != nil {
			return err
		}
	}
	if c.usesV3.Load() {
		if _, err := v.encodedV3(c.proxy.IP); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) encodedV1(ip string) (*v1Answers, error) {
	return v.v1.get(func() (a *v1Answers, err error) {
		err = v.server.recoverPanic("v1", func() error { a, err = encodeV1(v, ip); return err })
		return a, err
	})
}

func (v *view) encodedV3(ip string) (*v3Answers, error) {
	return v.v3.get(func() (a *v3Answers, err error) {
		err = v.server.recoverPanic("v3", func() error { a = encodeV3(v, ip); return nil })
		return a, err
	})
}

// problems found so far, in every version spoken.
func (v *view) problems() diag.List {
	all := slices.Clone(v.compiled)
	if a := v.v1.peek(); a != nil {
		all = append(all, a.problems.List()...)
	}
	if a := v.v3.peek(); a != nil {
		all = append(all, a.problems.List()...)
	}
	return all
}
