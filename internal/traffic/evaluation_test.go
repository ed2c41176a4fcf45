package traffic_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestEvaluatorIsRight checks that a real Envoy does with each request what the evaluator
// expects of the v3 resources. Other tests compare v1 with v3 through the evaluator.
func TestEvaluatorIsRight(t *testing.T) {
	outside.Slow(t)
	asked := 0
	for seed := range 12 {
		cfg := drawnConfig(t, seed)
		told := envoytest.Encode(cfg)
		proxy, err := evaluator.ReadV3(evaluator.V3Resources{Clusters: told.Clusters, Listeners: told.Listeners})
		if err != nil {
			t.Fatal(err)
		}
		e := envoytest.Start(t, cfg)
		for _, r := range meshgen.Requests(cfg, envoytest.ProxyIP) {
			want := proxy.Evaluate(r)
			if !r.Captured || !askable(r) || !certain(want) || opened(cfg, r) {
				continue
			}
			asked++
			if d := disagreement(want, ask(t, e, r)); d != "" {
				t.Errorf("seed %d, %+v:\n%s", seed, r, d)
			}
		}
	}
	if asked < 200 {
		t.Errorf("only %d requests were worth asking", asked)
	}
}

// drawnConfig returns the configuration of a sidecar in a mesh that the seed draws.
func drawnConfig(t *testing.T, seed int) *ir.Config {
	t.Helper()
	snapshot := mesh.NewSnapshot(1, mesh.DefaultSettings(), rapid.Custom(meshgen.Objects).Example(seed))
	cfg, _ := compile.Proxy(snapshot, viewOf(t, snapshot, "sidecar~"+envoytest.ProxyIP+"~x~default.svc.cluster.local"))
	return selfContained(t, cfg)
}

// opened reports whether a listener opens the port that the request goes to. Start opens
// another port instead.
func opened(cfg *ir.Config, r evaluator.Request) bool {
	return slices.ContainsFunc(cfg.Listeners, func(l *ir.Listener) bool {
		ip := l.IP
		if ip == "" {
			ip = envoytest.ProxyIP
		}
		return l.Bind && l.Port == int(r.Destination.Port()) && (ip == "0.0.0.0" || ip == r.Destination.Addr().String())
	})
}

// askable reports whether ask can write the request unchanged.
func askable(r evaluator.Request) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodPost}, r.Method) &&
		strings.HasPrefix(r.Path, "/") && r.Host != "" && !strings.Contains(r.Host, "/") && r.Destination.Addr().Is4()
}

// certain reports whether the outcome is the same each time, and has no delay.
func certain(o evaluator.Outcome) bool {
	for _, s := range o.Shares {
		for _, f := range s.Faults {
			if f.DelayPerMillion > 0 || f.AbortPerMillion > 0 && f.AbortPerMillion < ir.Million {
				return false
			}
		}
	}
	return true
}

// An answer is a response, with the words of the body that a backend wrote.
type answer struct {
	status   int // 0: the connection was closed
	location string
	words    []string // name, host, path, added headers
}

// ask sends the request over a captured connection.
func ask(t *testing.T, e *envoytest.Envoy, r evaluator.Request) answer {
	t.Helper()
	head := r.Method + " " + r.Path + " HTTP/1.1\r\nHost: " + r.Host + "\r\nContent-Length: 0\r\n"
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		head += name + ": " + r.Headers[name] + "\r\n"
	}
	got := envoytest.Ask(t, e.Captured(r.Destination.Addr().String(), int(r.Destination.Port())), head+"\r\n")
	return answer{got.Status, got.Header.Get("Location"), strings.Split(got.Body, " ")}
}

// disagreement returns how the answer differs from all that the outcome allows, or "".
func disagreement(want evaluator.Outcome, got answer) string {
	switch abort := abortStatus(want); {
	case want.Status != 0:
		return cmp.Diff([]any{want.Status, want.Location}, []any{got.status, got.location})
	case len(want.Shares) == 0:
		return cmp.Diff(0, got.status)
	case abort != 0:
		return cmp.Diff(abort, got.status)
	case !slices.ContainsFunc(want.Shares, func(s evaluator.Share) bool { return s.Cluster == got.words[0] }):
		return cmp.Diff(want.Shares, got.words)
	case want.TCP:
		return ""
	default:
		return cmp.Diff([]string{want.Host, want.Path}, got.words[1:3])
	}
}

func abortStatus(o evaluator.Outcome) int {
	for _, s := range o.Shares {
		for _, f := range s.Faults {
			if f.AbortPerMillion == ir.Million {
				return f.AbortStatus
			}
		}
	}
	return 0
}
