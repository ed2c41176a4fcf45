package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/server/rest"
	"github.com/pilot-api/pilot-api/server/wire"
)

// The classes of requests. Each has seats of its own, so that none starves another. Health
// checks, other replicas, and proven members of system:masters never wait for a seat.
const (
	classPeople     = "people"
	classAutomation = "automation" // ServiceAccounts
	classProxies    = "proxies"    // that poll
)

const (
	// seatsPerProcessor and leastSeats are the seats of each class. A write waits for the
	// disk most of its time, and writes that wait together share one wait. A user that is
	// not alone has at most seatsOfOne, and a write counts as weightOfWrite of them: each write
	// is compiled and synced, and others wait for that.
	seatsPerProcessor = 16
	leastSeats        = 64
	seatsOfOne        = 8
	weightOfWrite     = 4
	seatRest          = time.Millisecond
	// mostQueued and mostQueuedOfOne bound the requests of a class, and of one sender in
	// it, that wait for seats. Polls that wait hold their bodies in memory.
	mostQueued      = 4096
	mostQueuedOfOne = 1024
	mostQueuedPolls = 128
	seatPatience    = 15 * time.Second
)

// UserLimits bound the requests of each user, and of each address that proves no user. 0
// means no limit.
type UserLimits struct {
	Writes  int // in a second
	Bytes   int // in a second, sent and received, without watches that run
	Watches int // at one time
}

// overload decides which requests are worked on, and which wait or are refused.
type overload struct {
	classes       map[string]class
	users         UserLimits
	writes, bytes *admission.Allowance
	refused       *prometheus.CounterVec
}

// class is one class of requests.
type class struct {
	*admission.Class
	name   string
	waited prometheus.Observer
}

func newOverload(opts Options) *overload {
	o := &overload{
		classes: map[string]class{}, users: opts.Users,
		writes: admission.NewAllowance(opts.Users.Writes), bytes: admission.NewAllowance(opts.Users.Bytes),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pilot_admission_refused_total",
			Help: "Requests answered with 429 before any work, by class and reason.",
		}, []string{"class", "reason"}),
	}
	waited := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "pilot_admission_wait_seconds",
		Help:    "Time that requests waited for a seat of their class.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
	}, []string{"class"})
	opts.Registry.MustRegister(o.refused, waited)
	seats := max(leastSeats, seatsPerProcessor*runtime.GOMAXPROCS(0))
	waiting := max(1, min(mostQueued, opts.MaxConnections/4)) // Connections are left for those that come.
	for _, name := range []string{classPeople, classAutomation, classProxies} {
		bounds := admission.ClassOptions{
			Seats: seats, PerSender: seatsOfOne, Rest: seatRest, Queue: max(1, min(mostQueuedOfOne, waiting/2)), Waiting: waiting, Patience: seatPatience,
		}
		if name == classProxies { // Any number of proxies may have one address.
			bounds.PerSender, bounds.Rest = seats, 0
			bounds.Waiting = min(mostQueuedPolls, waiting)
			bounds.Queue = bounds.Waiting
		}
		c := admission.NewClass(bounds)
		o.classes[name] = class{c, name, waited.WithLabelValues(name)}
		show(opts.Registry, name, c)
	}
	return o
}

// show registers the metrics of the load of a class.
func show(reg prometheus.Registerer, class string, c *admission.Class) {
	labels := prometheus.Labels{"class": class}
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pilot_admission_seated", Help: "Requests of a class that are worked on now.", ConstLabels: labels,
		}, func() float64 { seated, _ := c.Load(); return float64(seated) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pilot_admission_waiting", Help: "Requests of a class that wait for a seat now.", ConstLabels: labels,
		}, func() float64 { _, waiting := c.Load(); return float64(waiting) }),
	)
}

// classOf returns the class of an identity, or "" if it waits for nobody.
func classOf(who identity.Identity) string {
	if who.Via != nil {
		who = *who.Via
	}
	switch {
	case who.IsProved() && (who.In(identity.Masters) || who.In(identity.Replicas)):
		return ""
	case who.In(identity.Accounts):
		return classAutomation
	}
	return classPeople
}

// weightOf returns how many of its user's seats a request counts as. Polls are reads.
func (c class) weightOf(r *http.Request) int {
	if c.name == classProxies || wire.IsRead(r) {
		return 1
	}
	return weightOfWrite
}

// enter waits for a seat of a class. Its error is one for the client.
func (o *overload) enter(ctx context.Context, of class, sender string, weight int) (leave func(), err error) {
	began := time.Now()
	leave, err = of.Enter(ctx, sender, weight)
	of.waited.Observe(time.Since(began).Seconds())
	switch {
	case errors.Is(err, admission.ErrQueueFull):
		return nil, o.refuse(of, "queue", time.Second, "the server is at the limit of the requests that wait, and you have the most of them")
	case errors.Is(err, admission.ErrImpatient):
		return nil, o.refuse(of, "wait", time.Second, "the server has more to do than it can: the request waited %v", seatPatience)
	}
	return leave, err
}

// allow refuses a sender that has used what it may use in a second.
func (o *overload) allow(of class, sender string, isWrite bool) error {
	if wait := o.bytes.Wait(sender); wait > 0 {
		return o.refuse(of, "bytes", wait, "you may send and receive %d bytes in a second, and have had more (--user-max-bytes)", o.users.Bytes)
	}
	if !isWrite {
		return nil
	}
	if wait := o.writes.Wait(sender); wait > 0 {
		return o.refuse(of, "writes", wait, "you may write %d times in a second, and have written more often (--user-max-writes)", o.users.Writes)
	}
	o.writes.Use(sender, 1)
	return nil
}

func (o *overload) refuse(of class, reason string, wait time.Duration, format string, args ...any) error {
	o.refused.WithLabelValues(of.name, reason).Inc()
	return apierrors.NewTooManyRequests(fmt.Sprintf(format, args...)+"; nothing was done, try again", wholeSeconds(wait))
}

// admit lets a request wait for a seat of its class, and refuses what exceeds the limits of
// its sender.
func (s *Server) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of, waits := s.overload.classes[classOf(identity.Of(r.Context()))]
		if !waits {
			next.ServeHTTP(w, r)
			return
		}
		sender := wire.Sender(r)
		if err := s.overload.allow(of, sender, !wire.IsRead(r)); err != nil {
			s.fail(w, r, err)
			return
		}
		defer func() { s.overload.bytes.Use(sender, bytesOf(r, w)) }()
		if err := s.overload.seated(w, r, of, sender, next); err != nil {
			s.fail(w, r, err)
		}
	})
}

// bytesOf returns how many bytes of bodies a request and its answer had.
func bytesOf(r *http.Request, w http.ResponseWriter) int {
	n := int(max(0, r.ContentLength))
	if ww := observed(w); ww != nil {
		n += ww.BytesWritten()
	}
	return n
}

// admitPoll is admit for polls of proxies.
func (s *Server) admitPoll(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.opts.Proxies != nil && !s.opts.AccessKnown() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, errAccessUnknown.Error(), http.StatusServiceUnavailable)
			return
		}
		if err := s.overload.seated(w, r, s.overload.classes[classProxies], wire.Address(r), next); err != nil {
			rest.Refuse(w, err)
		}
	})
}
