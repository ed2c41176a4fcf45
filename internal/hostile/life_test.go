package hostile

import (
	"context"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// life is one server with the quiet mesh, and some combinations of hostile objects that
// come and go.
type life struct {
	seed         uint64
	combinations int
	// stored: the objects of the first combination are in the store when the server
	// starts, and nobody has checked them.
	stored bool
	flags  []string
	// given are the objects of the first combination where they are not drawn.
	given *draw

	server  *server
	staying []*client // proxies that are there all the time
	fresh   int       // numbers of those that come anew
	quiet   map[string]answers

	judged, objects, refused, withheld int
	peak                               int64
}

func newLife(seed uint64, combinations int) *life {
	return &life{seed: seed, combinations: combinations, stored: seed%2 == 0}
}

// run returns what is found wrong with the first combination that is not as it must be.
func (l *life) run(t *testing.T) complaints {
	dir, err := newFolder()
	if err != nil {
		return complaints{err.Error()}
	}
	defer os.RemoveAll(dir)
	first := l.draw(0)
	if l.stored {
		err = storeUnchecked(t.Context(), dir, append(quiet(), first.out...))
	}
	if err == nil {
		l.server, err = startServer(t.Context(), dir, l.flags...)
	}
	if err != nil {
		return complaints{err.Error()}.about(0, first)
	}
	out := l.live(t.Context(), first)
	if l.peak = l.server.look(); l.peak == 0 {
		outside.Missing(t, "the memory of a process: /proc")
	}
	l.server.end()
	return out
}

func (l *life) draw(i int) *draw {
	if i == 0 && l.given != nil {
		return l.given
	}
	d := newDraw(l.seed, i, budgetOf)
	d.combination()
	return d
}

func (l *life) live(ctx context.Context, first *draw) (out complaints) {
	if !l.stored {
		if refused, err := l.server.write(ctx, quiet()); err != nil || len(refused) > 0 {
			return complaints{fmt.Sprintf("the quiet mesh is not written: %v %v", err, refused)}
		}
		if err := l.rest(ctx); err != nil {
			return complaints{err.Error()}
		}
	}
	for i, p := range proxies {
		l.staying = append(l.staying, newClient(p, i, l.server))
	}
	for i := range l.combinations {
		d := first
		if i > 0 {
			d = l.draw(i)
		}
		if out := l.combination(ctx, d.out, l.stored && i == 0, d.apart); len(out) > 0 {
			return out.about(i, d)
		}
		l.judged++
	}
	return nil
}

// combination has objects come, be judged, and go.
func (l *life) combination(ctx context.Context, objects []object, stored, apart bool) (out complaints) {
	f := found{objects: objects, stored: stored, apart: apart, told: map[string]answers{}}
	var err error
	if !stored {
		if f.refused, err = l.server.write(ctx, objects); err != nil {
			return complaints{err.Error()}
		}
	}
	if f.problems, err = l.server.problems(ctx); err != nil {
		return complaints{err.Error()}
	}
	for _, c := range l.staying {
		if err := c.fetch(ctx); err != nil {
			out.add("%v", err)
		}
	}
	if f.told, err = l.ask(ctx, f.clusters()...); err != nil {
		out.add("%v", err)
	}
	if err := l.server.remove(ctx, f.present()); err != nil {
		return append(out, err.Error())
	}
	before := l.quiet
	if err := l.rest(ctx); err != nil {
		return append(out, err.Error())
	}
	if before != nil {
		out.compare(atTheEnd, before, l.quiet, everything)
	}
	f.quiet = l.quiet
	out = append(out, f.judge()...)
	if peak := l.server.look(); peak > memory {
		out.add("the server had %d MiB, at most %d are allowed", peak>>20, memory>>20)
	}
	l.objects += len(objects)
	l.refused += len(f.refused)
	l.withheld += len(f.withheld())
	return out
}

// rest takes down what proxies are told of the quiet mesh alone.
func (l *life) rest(ctx context.Context) error {
	problems, err := l.server.problems(ctx)
	if err != nil {
		return err
	}
	for _, p := range problems {
		if isBudget(p) {
			return fmt.Errorf("nothing hostile is left, and there is still: %v", p)
		}
	}
	l.quiet, err = l.ask(ctx)
	return err
}

// ask has proxies come that nobody has seen, so that they are told what holds now and
// nothing of before.
func (l *life) ask(ctx context.Context, clusters ...string) (map[string]answers, error) {
	out := map[string]answers{}
	for _, p := range proxies {
		l.fresh++
		c := newClient(p, 1000+l.fresh, l.server)
		if err := c.fetch(ctx, clusters...); err != nil {
			return out, err
		}
		out[p.name] = maps.Clone(c.has)
	}
	return out, nil
}
