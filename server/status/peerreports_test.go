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
var lookAt = map[string]func(b *peerReports) peerView{
	"recent": func(b *peerReports) peerView { return b.look(time.Now().Add(-Age)) },
	"fresh":  func(b *peerReports) peerView { return b.look(time.Now()) },
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
					if v := look(b); len(v.silent)+len(v.answers) > 0 {
						t.Fatalf("all alone: %+v", v)
					}
					time.Sleep(idle)
					if v := look(b); len(v.silent)+len(v.answers) > 0 {
						t.Errorf("all alone, later: %+v", v)
					}
					time.Sleep(idle)
					all.answers["far"] = at(7)
					if v := look(b); len(v.silent) > 0 || len(v.answers) != 1 || v.answers[0].revision != 7 {
						t.Errorf("with one that has come: %+v", v)
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
		if v := lookAt["recent"](b); len(v.silent) != 1 {
			t.Errorf("before the first answer: %+v", v)
		}
		if v := lookAt["fresh"](b); len(v.silent) > 0 || len(v.answers) != 1 || v.answers[0].revision != 2 {
			t.Errorf("asked %v, told %+v", asked, v)
		}
		if v := lookAt["recent"](b); len(v.silent) > 0 || v.answers[0].revision != 2 {
			t.Errorf("who does not ask for what is so now: %+v", v)
		}
		time.Sleep(time.Duration(slow.Load()))
		slow.Store(int64(time.Hour))
		if v := lookAt["fresh"](b); len(v.answers) > 0 || !strings.Contains(strings.Join(v.silent, ""), "far") {
			t.Errorf("one that does not answer: %+v", v)
		}
		time.Sleep(time.Duration(slow.Load()))
	})
}
