package status

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// TestProxyReturnEnds checks that the server does not wait forever for earlier
// proxies. When it stops waiting, watchers and other replicas are notified,
// although nothing was written and no proxy has connected.
func TestProxyReturnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasts = 30 * time.Second
		kind, _ := schema.KindByName("RouteRule")
		meta := metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: "1", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}
		o, err := schema.New(kind, meta, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		b, own := New(Options{ProxyReturn: lasts, Log: slog.New(slog.DiscardHandler), Statuses: func(*discovery.ObjectStatuses) *discovery.ObjectStatuses {
			return &discovery.ObjectStatuses{Revision: 1, Objects: []*schema.Object{o}}
		}})
		reason := func() string {
			status, _ := b.Recent().Of(o)
			return status.Condition(schema.ConditionProgrammed).Reason
		}
		awaiting := func() bool {
			text, _, err := own.Text(t.Context(), Age)
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Contains(text, []byte(`"awaiting":true`))
		}
		if got := reason(); got != schema.ReasonNoProxiesYet || !awaiting() {
			t.Errorf("after the start: %s, and proxies are awaited: %v", got, awaiting())
		}
		defer b.Watch()()
		_, version, changed := b.Since(0)
		select {
		case <-changed:
		case <-time.After(2 * lasts):
			t.Fatal("the status does not change")
		}
		if passed := time.Since(began); passed < lasts {
			t.Errorf("the status changed after %s", passed)
		}
		if keys, _, _ := b.Since(version); len(keys) != 1 || keys[0] != o.Key() {
			t.Errorf("the status of %v has changed", keys)
		}
		if got := reason(); got != schema.ReasonNoProxies || awaiting() {
			t.Errorf("at the end: %s, and proxies are awaited: %v", got, awaiting())
		}
	})
}
