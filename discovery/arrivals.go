package discovery

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"

	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/discovery/stream"
)

// Limits for log lines about single proxies. When hundreds of proxies reconnect at once,
// the metrics count all of them, and the next line says how many lines were left out.
const (
	arrivalLines = 5  // per second
	arrivalBurst = 50 // at once
)

// arrivals tells of proxies that come and go on streams, and of those that begin or cease
// to refuse something. It is safe for concurrent use.
type arrivals struct {
	log     *slog.Logger
	pace    *rate.Limiter
	leftOut atomic.Int64
	changes atomic.Uint64 // counts who came and went

	connects     *prometheus.CounterVec
	disconnects  *prometheus.CounterVec
	changeCounts *prometheus.CounterVec
}

// Values of metric labels: how a stream ended, and whether a proxy began to refuse or to
// accept.
const (
	endedByProxy = "closed"
	endedLost    = "lost"
	nowRefuses   = "refuses"
	nowAccepts   = "accepts"
)

func newArrivals(log *slog.Logger, registry prometheus.Registerer) *arrivals {
	const prefix = "pilot_discovery_proxy_"
	with := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	a := &arrivals{
		log: log, pace: rate.NewLimiter(arrivalLines, arrivalBurst),
		connects:     counter("connects_total", "Streams of proxies that began, by transport.", "transport"),
		disconnects:  counter("disconnects_total", "Streams of proxies that ended, by transport and how: closed by the proxy, or lost.", "transport", "how"),
		changeCounts: counter("turns_total", "Times that a proxy began to refuse something of its configuration, or accepts all of it again.", "to"),
	}
	for _, over := range streamed {
		a.connects.WithLabelValues(string(over))
		for _, how := range []string{endedByProxy, endedLost} {
			a.disconnects.WithLabelValues(string(over), how)
		}
	}
	for _, to := range []string{nowRefuses, nowAccepts} {
		a.changeCounts.WithLabelValues(to)
	}
	return a
}

var streamed = []feedback.Transport{feedback.OverDelta, feedback.OverADS, feedback.OverGRPC}

func (a *arrivals) came(c *fleet.Client, st *stream.Stream) {
	a.changes.Add(1)
	a.connects.WithLabelValues(string(st.Transport())).Inc()
	a.tell("proxy connected", "node", c.Node.ID, "transport", st.Transport())
}

func (a *arrivals) left(c *fleet.Client, st *stream.Stream) {
	a.changes.Add(1)
	how := endedByProxy
	if st.IsLost() {
		how = endedLost
	}
	a.disconnects.WithLabelValues(string(st.Transport()), how).Inc()
	a.tell("proxy disconnected", "node", c.Node.ID, "transport", st.Transport(), "how", how, "after", time.Since(st.Since()))
}

// refusalChanged tells that a proxy began to refuse something, or ceased to.
func (a *arrivals) refusalChanged(node string, refuses bool) {
	if refuses {
		a.changeCounts.WithLabelValues(nowRefuses).Inc()
		a.tell("proxy refuses a part of its configuration, or does not get it", "node", node)
		return
	}
	a.changeCounts.WithLabelValues(nowAccepts).Inc()
	a.tell("proxy accepts all of its configuration again", "node", node)
}

func (a *arrivals) tell(text string, args ...any) {
	if !a.pace.Allow() {
		a.leftOut.Add(1)
		return
	}
	if n := a.leftOut.Swap(0); n > 0 {
		args = append(args, "linesLeftOut", n)
	}
	a.log.Log(context.Background(), slog.LevelInfo, text, args...)
}
