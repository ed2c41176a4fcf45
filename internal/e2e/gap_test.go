package e2e

import (
	"context"
	"errors"
	"os"
	"testing"
)

// TestNoGap: while rules come and go, each with clusters that Envoy has not
// had before, every request is answered.
func TestNoGap(t *testing.T) {
	t.Parallel()
	w := open(t, bookshop, proxyPort)
	gapless(t, w, func(ctx context.Context) {
		for _, rule := range []string{"all-to-v1", "half-v1-half-v3", "jason-to-v2", "all-to-v1", "mirror-to-v3"} {
			if err := w.Under(ctx, []string{rule}, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestNoGapAfterRestart: nor when the server dies and a rule that needs new
// clusters, or no longer needs old ones, follows at once upon its restart.
func TestNoGapAfterRestart(t *testing.T) {
	for name, settings := range map[string]string{
		"same settings":  "",
		"other settings": "\nv1Compatibility: true\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, bookshop, proxyPort)
			if err := w.apply(t.Context(), []string{"all-to-v1"}); err != nil {
				t.Fatal(err)
			}
			gapless(t, w, func(ctx context.Context) {
				restart := func(change func(context.Context, []string) error, rule string) {
					w.Pilot.kill()
					if err := w.Pilot.Restart(ctx); err != nil {
						t.Fatal(err)
					}
					if err := change(ctx, []string{rule}); err != nil {
						t.Fatal(err)
					}
				}
				appendTo(t, w.file("mesh"), settings)
				restart(w.apply, "jason-to-v2")
				restart(w.withdraw, "all-to-v1")
				restart(w.apply, "half-v1-half-v3")
			})
		})
	}
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
