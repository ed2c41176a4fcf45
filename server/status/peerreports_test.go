package status

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/server/replica"
)

// toldReplicas are a list of replicas, and replicas that answer what it defines.
type toldReplicas struct {
	answers map[string]func(age time.Duration) *Report
}

func (toldReplicas) Self() string { return "here" }

func (toldReplicas) CutOff() (time.Time, bool) { return time.Time{}, false }

func (r toldReplicas) Others(context.Context) ([]replica.Replica, error) {
	time.Sleep(time.Millisecond) // a request to the store
	var others []replica.Replica
	for name := range maps.Keys(r.answers) {
		others = append(others, replica.Replica{Name: name})
	}
	return others, nil
}

func (r toldReplicas) board() *peerReports {
	b := newPeerReports(Options{Peers: r, Log: slog.New(slog.DiscardHandler)})
	b.ask = func(_ context.Context, of replica.Replica, age time.Duration, _ string) (*Report, string, error) {
		return r.answers[of.Name](age), of.Name, nil
	}
	return b
}

func at(revision int64) func(time.Duration) *Report {
	return func(time.Duration) *Report { return &Report{Revision: revision} }
}

// lookAt has two kinds of looks: at the interval of watchers, and for a caller that
// asks for the current state.
var lookAt = map[string]func(b *peerReports) peerSnapshot{
	"recent": func(b *peerReports) peerSnapshot { return b.look(time.Now().Add(-Age)) },
	"fresh":  func(b *peerReports) peerSnapshot { return b.look(time.Now()) },
}

// TestAfterIdleness checks that the first caller after a while gets the current
// state, also of replicas that have joined meanwhile.
func TestAfterIdleness(t *testing.T) {
	for name, look := range lookAt {
		for _, idle := range []time.Duration{2 * time.Second, time.Minute} {
			t.Run(name+" "+idle.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := toldReplicas{map[string]func(time.Duration) *Report{}}
					b := all.board()
					if p := look(b); len(p.silent)+len(p.answers) > 0 {
						t.Fatalf("all alone: %+v", p)
					}
					time.Sleep(idle)
					if p := look(b); len(p.silent)+len(p.answers) > 0 {
						t.Errorf("all alone, later: %+v", p)
					}
					time.Sleep(idle)
					all.answers["far"] = at(7)
					if p := look(b); len(p.silent) > 0 || len(p.answers) != 1 || p.answers[0].revision != 7 {
						t.Errorf("with one that has come: %+v", p)
					}
				})
			})
		}
	}
}

// TestFreshIsNotShared checks that a caller that asks for the current state does
// not get the answer to an older query, and learns which replicas do not answer.
func TestFreshIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64
		slow.Store(int64(3 * Age))
		var asked []time.Duration
		all := toldReplicas{map[string]func(time.Duration) *Report{"far": func(age time.Duration) *Report {
			asked = append(asked, age)
			said := &Report{Revision: int64(len(asked))}
			time.Sleep(time.Duration(slow.Load()))
			return said
		}}}
		b := all.board()
		if p := lookAt["recent"](b); len(p.silent) != 1 {
			t.Errorf("before the first answer: %+v", p)
		}
		if p := lookAt["fresh"](b); len(p.silent) > 0 || len(p.answers) != 1 || p.answers[0].revision != 2 {
			t.Errorf("asked %v, told %+v", asked, p)
		}
		if p := lookAt["recent"](b); len(p.silent) > 0 || p.answers[0].revision != 2 {
			t.Errorf("who does not ask for what is so now: %+v", p)
		}
		time.Sleep(time.Duration(slow.Load()))
		slow.Store(int64(time.Hour))
		if p := lookAt["fresh"](b); len(p.answers) > 0 || !strings.Contains(strings.Join(p.silent, ""), "far") {
			t.Errorf("one that does not answer: %+v", p)
		}
		time.Sleep(time.Duration(slow.Load()))
	})
}
