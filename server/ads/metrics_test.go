package ads_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/server/ads"
)

// TestMetrics checks that pushes, their bytes and refusals are counted by type and
// variant, and that a type that is not served is not counted.
func TestMetrics(t *testing.T) {
	inBoth(t, func(t *testing.T, kind variant) {
		registry := prometheus.NewRegistry()
		s := serveAs(t, ads.Options{Registry: registry}, newSource(service("web.example", 80, 1, "a")))
		c := s.connect(kind, nodeA)
		c.subscribe(cds)
		c.ack(c.one())
		c.subscribe(lds)
		c.nack(c.one(), "no")
		c.subscribe("type.googleapis.com/nothing")
		settle()
		over := map[variant]string{world: "ads", delta: "delta"}[kind]
		for want, n := range map[[3]string]float64{
			{"pilot_xds_pushes_total", "cds", over}: 1,
			{"pilot_xds_pushes_total", "lds", over}: 1,
			{"pilot_xds_pushes_total", "rds", over}: 0,
			{"pilot_xds_nacks_total", "lds", over}:  1,
			{"pilot_xds_nacks_total", "cds", over}:  0,
			{"pilot_xds_pushes_total", "sds", over}: 0,
			{"pilot_xds_nacks_total", "sds", over}:  0,
		} {
			if got, ok := counted(t, registry, want); !ok || got != n {
				t.Errorf("%v is %v, want %v", want, got, n)
			}
		}
		if got, _ := counted(t, registry, [3]string{"pilot_xds_push_bytes_total", "cds", over}); got < 100 {
			t.Errorf("%v bytes of clusters", got)
		}
	})
}

// counted returns a counter by its name, type and transport, the only labels.
func counted(t *testing.T, registry *prometheus.Registry, of [3]string) (float64, bool) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			l := m.GetLabel()
			if family.GetName() == of[0] && len(l) == 2 && l[0].GetValue() == of[2] && l[1].GetValue() == of[1] {
				return m.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}
