package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// state is the nth of a mesh: a rule with a time-out of n seconds, and with every other
// one a cluster that no other has.
func state(t testing.TB, n int) []*schema.Object {
	rule := object(t, "RouteRule", "state", fmt.Sprintf(
		`{"destination":{"service":"web.example"},"route":[{"labels":{"version":"v%d"}}],"httpReqTimeout":{"simpleTimeout":{"timeout":"%ds"}}}`, n/2, n))
	return []*schema.Object{service(t, "web.example", "10.1.0.1"), rule}
}

// lagging is a source that hears of what is stored when the test has it do so, or when
// it is asked to catch up.
type lagging struct {
	*objects
	t      testing.TB
	stored int // the state
	heard  int
	cut    time.Time // since when it cannot reach the store; zero while it can
}

func (l *lagging) hear() {
	for ; l.heard < l.stored; l.heard++ {
		l.set(state(l.t, l.heard+1)...)
	}
}

func (l *lagging) mend() { l.cut = time.Time{} }

func (l *lagging) catchUp(ctx context.Context) (int64, error) {
	if !l.cut.IsZero() {
		select {
		case <-ctx.Done():
		case <-l.t.Context().Done():
		}
		return 0, context.DeadlineExceeded
	}
	l.hear()
	_, revision, _ := l.Snapshot()
	return revision, nil
}

// wanderer is an Envoy that goes from one of two replicas to the other at any time, of
// which the second may be behind.
type wanderer struct {
	*testing.T
	*rand.Rand
	replicas []*discovery.Publisher
	at       int
	has      map[string]discovery.Answer // by type
	due      map[string]time.Time        // the next poll, by type
	state    int                         // that it routes by
}

// ask polls as often as an Envoy does: between one and two delays after the last poll.
// Where there is no answer it keeps what it has.
func (e *wanderer) ask(typeURL string) {
	e.Helper()
	delay, names := mesh.DefaultSettings().DiscoveryRefreshDelay, []string(nil)
	if typeURL == discovery.RouteType {
		delay, names = mesh.DefaultSettings().RDSRefreshDelay, []string{"80"}
	}
	e.due[typeURL] = time.Now().Add(delay + time.Duration(e.Int64N(int64(delay))))
	a, err := e.replicas[e.at].V3(typeURL, mesh.Node{ID: nodeA}, e.has[typeURL].Version, names)
	if err != nil && !errors.Is(err, discovery.ErrNotReady) {
		e.Fatal(err)
	}
	synctest.Wait() // It may be catching up.
	e.Logf("%v replica %d is asked for %s %.6s: %.6s %v", time.Now().Format("04:05.000"), e.at, typeURL[strings.LastIndexByte(typeURL, '.')+1:], e.has[typeURL].Version, a.Version, err)
	if err == nil && a.Version != e.has[typeURL].Version {
		e.has[typeURL] = a
	}
	e.check()
}

// next waits for the next poll.
func (e *wanderer) next() {
	e.Helper()
	first := slices.MinFunc(slices.Sorted(maps.Keys(e.due)), func(a, b string) int { return e.due[a].Compare(e.due[b]) })
	time.Sleep(time.Until(e.due[first]))
	e.ask(first)
}

var stateOfRoutes = regexp.MustCompile(`version=v\d+","timeout":"(\d+)s"`)

// check is what must hold: each route leads to a cluster that is there, and what was
// accepted is not taken back.
func (e *wanderer) check() {
	e.Helper()
	clusters := resourceNames(e.T, e.has[discovery.ClusterType])
	routes := e.has[discovery.RouteType].Body
	for _, found := range routedCluster.FindAllSubmatch(routes, -1) {
		if name := string(found[1]); !slices.Contains(clusters, name) {
			e.Fatalf("a route leads to %s, which is not there", name)
		}
	}
	if found := stateOfRoutes.FindSubmatch(routes); found != nil {
		n, _ := strconv.Atoi(string(found[1]))
		if n < e.state {
			e.Fatalf("the routes are those of state %d, and were of %d", n, e.state)
		}
		e.state = n
	}
}

// TestPollsOfAReplicaThatIsBehind: a proxy that goes from one replica to another which is
// behind, for moments or for a minute, never loses a cluster that one of its routes leads
// to, and never goes back to an older state.
func TestPollsOfAReplicaThatIsBehind(t *testing.T) {
	outside.Slow(t)
	for seed := range uint64(100) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ahead := newObjects(state(t, 1)...)
				behind := &lagging{objects: newObjects(state(t, 1)...), t: t, stored: 1, heard: 1}
				e := &wanderer{
					T: t, Rand: rand.New(rand.NewPCG(seed, 0)), has: map[string]discovery.Answer{}, due: map[string]time.Time{},
					replicas: []*discovery.Publisher{
						follow(t, ahead, discovery.Options{}),
						follow(t, behind, discovery.Options{CatchUp: behind.catchUp}),
					},
				}
				for _, typeURL := range []string{discovery.ClusterType, discovery.ListenerType, discovery.RouteType} {
					e.ask(typeURL)
				}
				for range e.IntN(200) {
					e.step(ahead, behind)
				}
				behind.mend()
				behind.hear()
				e.end(behind.stored)
			})
		})
	}
}

// maxSkipped is how many states a replica may hear of at once.
const maxSkipped = 4

// step is a poll, or something that happens before it.
func (e *wanderer) step(ahead *objects, behind *lagging) {
	if !behind.cut.IsZero() && time.Since(behind.cut) > time.Minute {
		behind.mend()
	}
	switch e.IntN(14) {
	case 0:
		if behind.stored++; behind.stored > behind.heard+maxSkipped {
			behind.mend()
			behind.hear()
		}
		e.Log("state", behind.stored)
		ahead.set(state(e, behind.stored)...)
		synctest.Wait()
	case 2:
		e.at = 1 - e.at
	case 3:
		if behind.cut.IsZero() {
			behind.hear()
		}
	case 4:
		if behind.cut.IsZero() {
			behind.cut = time.Now()
		}
	case 5:
		behind.mend()
	default:
		e.next()
	}
}

// end has it come to the last state.
func (e *wanderer) end(state int) {
	for range 100 {
		e.next()
	}
	fresh, err := e.replicas[0].V3(discovery.ClusterType, mesh.Node{ID: nodeB}, "", nil)
	if err != nil {
		e.Fatal(err)
	}
	if got, want := resourceNames(e.T, e.has[discovery.ClusterType]), resourceNames(e.T, fresh); e.state != state || !slices.Equal(got, want) {
		e.Errorf("in the end the state is %d with the clusters %v, want %d with %v", e.state, got, state, want)
	}
}
