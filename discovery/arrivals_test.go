package discovery_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestProxiesThatComeAndGoAreTold: each is a line of the log, and so are a refusal and its
// end. Of hundreds at once there are fewer lines, and the metrics have them all.
func TestProxiesThatComeAndGoAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		reg := prometheus.NewRegistry()
		src := newObjects(service(t, "web.example", "10.1.0.1"))
		s := follow(t, src, discovery.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Registry: reg})
		lines := func(want ...string) (n int) {
			for line := range strings.Lines(log.String()) {
				has := strings.Contains(line, "level=INFO")
				for _, text := range want {
					has = has && strings.Contains(line, text)
				}
				if has {
					n++
				}
			}
			return n
		}
		value := func(name, label string) (sum float64) {
			all, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range all {
				for _, m := range family.GetMetric() {
					if family.GetName() == name && strings.Contains(m.String(), label) {
						sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
					}
				}
			}
			return sum
		}
		connect := func(n int) *simulated.Proxy {
			p, err := simulated.Connect(s, simulated.Node(n))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		one := connect(0)
		synctest.Wait()
		one.Refuse(discovery.RouteType, "no")
		src.set(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 1))
		time.Sleep(time.Second)
		synctest.Wait()
		one.Accept()
		src.set(service(t, "web.example", "10.1.0.1"), timeout(t, "web.example", 2))
		time.Sleep(time.Second)
		synctest.Wait()
		one.Lose()
		synctest.Wait()
		for _, want := range []string{"proxy connected", "proxy refuses", "proxy accepts", "proxy disconnected"} {
			if lines(want, simulated.Node(0)) != 1 {
				t.Errorf("%d lines of %q: %s", lines(want), want, &log)
			}
		}
		if lines("how=lost") != 1 || value("pilot_discovery_lost_proxies", "") != 1 || value("pilot_discovery_proxy_turns_total", "refuses") != 1 {
			t.Errorf("lost or refusing: %s", &log)
		}

		time.Sleep(time.Minute)
		before := lines("proxy connected")
		var all []*simulated.Proxy
		for n := range 300 {
			all = append(all, connect(n+1))
		}
		synctest.Wait()
		if n := lines("proxy connected") - before; n != 50 {
			t.Errorf("%d lines of 300 proxies at once, want 50", n)
		}
		if n := value("pilot_discovery_proxy_connects_total", "delta"); n != 301 {
			t.Errorf("%v connects are counted, want 301", n)
		}
		time.Sleep(time.Minute)
		for _, p := range all {
			p.Leave()
		}
		if lines("linesLeftOut=250") != 1 {
			t.Error("nobody says how many lines were left out")
		}
		if n := value("pilot_discovery_disconnected_proxies", ""); n != 301 {
			t.Errorf("%v are disconnected, want 301", n)
		}
	})
}
