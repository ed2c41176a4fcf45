package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// fault is a failure and its repair.
type fault struct {
	name string
	// do makes the fault and returns its repair.
	do func() (mend func() error)
	// most is the maximum duration.
	most time.Duration
}

// faults returns one fault of each sort, in random order, for random servers and members.
func (w *world) faults(random *rand.Rand) []fault {
	server := random.IntN(len(w.servers))
	s := w.servers[server].Process
	all := []fault{kill(s), killTwice(s), pauseOf(s, 3*time.Second), w.restart(s)}
	if w.etcd != nil {
		i := random.IntN(len(w.etcd.Members))
		member, other := w.etcd.Members[i].Process, w.etcd.Members[(i+1)%len(w.etcd.Members)].Process
		all = append(all, kill(member), w.killMembers(), pauseOf(member, 4*time.Second), pauseBoth(member, other), w.breakLinks(), w.compact(random))
		for _, mode := range []testbed.Mode{testbed.Refusing, testbed.Silent, testbed.Slow} {
			all = append(all, w.cutMember(i, mode), w.cutServer(server, mode), w.cutLink(server, i, mode))
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func kill(p *testbed.Process) fault {
	return fault{"kill " + p.Name, func() func() error { p.Kill(); return p.Start }, 2 * time.Second}
}

// killTwice kills a program, and again while it starts.
func killTwice(p *testbed.Process) fault {
	return fault{"kill twice " + p.Name, func() func() error {
		p.Kill()
		err := p.Start()
		return func() error {
			if err != nil {
				return err
			}
			p.Kill()
			return p.Start()
		}
	}, 500 * time.Millisecond}
}

// killMembers kills all members of etcd.
func (w *world) killMembers() fault {
	return fault{"kill all of etcd", func() func() error {
		for _, m := range w.etcd.Members {
			m.Kill()
		}
		return func() error {
			var errs []error
			for _, m := range w.etcd.Members {
				errs = append(errs, m.Start())
			}
			return errors.Join(errs...)
		}
	}, time.Second}
}

// restart asks a server to end. If the server does not, it is killed, and the world
// records that.
func (w *world) restart(p *testbed.Process) fault {
	return fault{"restart " + p.Name, func() func() error {
		if err := p.Stop(); err != nil {
			w.complaints = append(w.complaints, err)
		}
		return p.Start
	}, time.Second}
}

func pauseOf(p *testbed.Process, most time.Duration) fault {
	return fault{"pause " + p.Name, func() func() error {
		p.Pause()
		return func() error { p.Resume(); return nil }
	}, most}
}

func pauseBoth(a, b *testbed.Process) fault {
	return fault{"pause " + a.Name + " and " + b.Name, func() func() error {
		a.Pause()
		b.Pause()
		return func() error { a.Resume(); b.Resume(); return nil }
	}, 3 * time.Second}
}

func (w *world) cutMember(i int, m testbed.Mode) fault {
	return fault{fmt.Sprintf("cut off %s, %s", w.etcd.Members[i].Name, m), func() func() error {
		w.etcd.Cut(i, m)
		return func() error { w.etcd.Cut(i, testbed.Open); return nil }
	}, 4 * time.Second}
}

func (w *world) cutServer(server int, m testbed.Mode) fault {
	return fault{fmt.Sprintf("cut off %s, %s", w.servers[server].Name, m), func() func() error {
		return setAll(w.links[server], m)
	}, 3 * time.Second}
}

func (w *world) cutLink(server, member int, m testbed.Mode) fault {
	return fault{fmt.Sprintf("cut %s from %s, %s", w.servers[server].Name, w.etcd.Members[member].Name, m), func() func() error {
		return setAll(w.links[server][member:member+1], m)
	}, 4 * time.Second}
}

func setAll(links []*testbed.Link, m testbed.Mode) (mend func() error) {
	for _, l := range links {
		l.Set(m)
	}
	return func() error {
		for _, l := range links {
			l.Set(testbed.Open)
		}
		return nil
	}
}

func (w *world) breakLinks() fault {
	return fault{"break all connections", func() func() error {
		for _, links := range w.links {
			for _, l := range links {
				l.Break()
			}
		}
		return func() error { return nil }
	}, 100 * time.Millisecond}
}

// compact compacts etcd as an administrator may, so that only the last changes remain.
func (w *world) compact(random *rand.Rand) fault {
	return fault{"compact", func() func() error {
		revision := w.collected.revision() - random.Int64N(200)
		return func() error {
			if revision <= 1 {
				return nil
			}
			w.compacted(revision)
			ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
			defer cancel()
			// If this fails, more is kept than the record says, which does no harm.
			_, _ = w.collected.client.Compact(ctx, revision)
			return nil
		}
	}, time.Second}
}

// havoc makes one fault after the other until ctx ends, and repairs the last one. Each
// lasts up to its own maximum multiplied by pace. Each call of draw returns some of them. It
// returns the number of faults.
func havoc(ctx context.Context, random *rand.Rand, pace float64, log io.Writer, draw func(*rand.Rand) []fault) (n int, err error) {
	upTo := func(most time.Duration) time.Duration {
		return time.Duration(pace * random.Float64() * float64(most))
	}
	for {
		for _, f := range draw(random) {
			lasts := upTo(f.most)
			sleep(ctx, upTo(3*time.Second))
			if ctx.Err() != nil {
				return n, nil
			}
			n++
			fmt.Fprintf(log, "%s for %s\n", f.name, lasts.Round(time.Millisecond))
			mend := f.do()
			sleep(ctx, lasts)
			if err := mend(); err != nil {
				return n, err
			}
		}
	}
}
