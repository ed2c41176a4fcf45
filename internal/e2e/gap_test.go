package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestNoGap: while rules come and go, each with clusters that Envoy has not
// had before, every request is answered.
func TestNoGap(t *testing.T) {
	outside.Slow(t)
	for _, api := range []string{"delta", "ads", "rest"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			w := open(t, bookshop, proxyPortWith("--api", api))
			gapless(t, w, func(ctx context.Context) {
				for _, rule := range []string{"all-to-v1", "half-v1-half-v3", "jason-to-v2", "all-to-v1", "mirror-to-v3"} {
					if err := w.Under(ctx, []string{rule}, func() error { return nil }); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// TestNoGapOnStreams: nor when the server dies, and a rule that needs new clusters,
// or no longer needs old ones, follows at once upon its restart.
func TestNoGapOnStreams(t *testing.T) {
	outside.Slow(t)
	for _, api := range []string{"delta", "ads"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			w := open(t, bookshop, proxyPortWith("--api", api))
			if err := w.apply(t.Context(), []string{"all-to-v1"}); err != nil {
				t.Fatal(err)
			}
			gapless(t, w, func(ctx context.Context) {
				w.restart(ctx, t, w.withdraw, "all-to-v1")
				w.restart(ctx, t, w.apply, "half-v1-half-v3")
			})
		})
	}
}

// restart kills the server, and has the rules changed as soon as it is back.
func (w *World) restart(ctx context.Context, t *testing.T, change func(context.Context, []string) error, rule string) {
	t.Helper()
	w.Pilot.Kill()
	if err := w.Pilot.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := change(ctx, []string{rule}); err != nil {
		t.Fatal(err)
	}
}

// TestNoGapAfterRestart: nor when the server dies and a rule that needs new
// clusters, or no longer needs old ones, follows at once upon its restart. Envoy
// polls for one of clusters and routes long before the other, so that a server
// that told both all it has would make a gap to be seen.
func TestNoGapAfterRestart(t *testing.T) {
	outside.Slow(t)
	for first, delays := range map[string]struct{ clusters, routes string }{
		"clusters": {"0.2s", "2s"},
		"routes":   {"2s", "0.2s"},
	} {
		for name, settings := range map[string]string{
			"same settings":  "",
			"other settings": "\nv1Compatibility: true\n",
		} {
			t.Run(first+" first/"+name, func(t *testing.T) {
				t.Parallel()
				w := open(t, polling(t, bookshop, delays.clusters, delays.routes), proxyPortWith("--api", "rest", "--refresh-delay", delays.clusters))
				if err := w.apply(t.Context(), []string{"all-to-v1"}); err != nil {
					t.Fatal(err)
				}
				gapless(t, w, func(ctx context.Context) {
					appendTo(t, w.file("mesh"), settings)
					w.restart(ctx, t, w.withdraw, "all-to-v1")
					w.restart(ctx, t, w.apply, "half-v1-half-v3")
				})
			})
		}
	}
}

// polling is the setting with other delays between polls.
func polling(t *testing.T, s Setting, clusters, routes string) Setting {
	t.Helper()
	text, err := os.ReadFile(s.Mesh)
	if err != nil {
		t.Fatal(err)
	}
	slower := strings.NewReplacer("rdsRefreshDelay: 0.2s", "rdsRefreshDelay: "+routes, "discoveryRefreshDelay: 0.2s", "discoveryRefreshDelay: "+clusters)
	s.Mesh = filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(s.Mesh, []byte(slower.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// gapless sends requests until during returns; each must be answered 200.
func gapless(t *testing.T, w *World, during func(context.Context)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	statuses := make(chan map[int]int, 1)
	go func() {
		seen := map[int]int{}
		for i := 0; ctx.Err() == nil; i++ {
			answer, err := get("reviews")(i).send(t.Context(), w.client)
			if err != nil {
				t.Error(err)
				break
			}
			seen[answer.Status]++
		}
		statuses <- seen
	}()
	during(ctx)
	stop()
	if seen := <-statuses; len(seen) != 1 || seen[200] == 0 {
		t.Errorf("answers by status: %v, want only 200", seen)
	}
}
