package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// annotationLock is a lock of client-go's leader election in an annotation of an
// object, which is written only if nobody has written it since it was read.
type annotationLock struct {
	rules    dynamic.ResourceInterface
	identity string
	read     *unstructured.Unstructured
}

const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

func (l *annotationLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	o, err := l.rules.Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	l.read = o
	text := []byte(o.GetAnnotations()[leaderAnnotation])
	var record resourcelock.LeaderElectionRecord
	return &record, text, json.Unmarshal(text, &record)
}

func (l *annotationLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	o, err := withRecord(ruleObject("leader", "red", 0), record)
	if err == nil {
		l.read, err = l.rules.Create(ctx, o, metav1.CreateOptions{})
	}
	return err
}

func (l *annotationLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.read == nil {
		return errors.New("the lock is written before it is read")
	}
	o, err := withRecord(l.read.DeepCopy(), record)
	if err != nil {
		return err
	}
	next, err := l.rules.Update(ctx, o, metav1.UpdateOptions{})
	if err == nil {
		l.read = next
	}
	return err
}

func withRecord(o *unstructured.Unstructured, record resourcelock.LeaderElectionRecord) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(record)
	o.SetAnnotations(map[string]string{leaderAnnotation: string(text)})
	return o, err
}

func (l *annotationLock) RecordEvent(string) {}
func (l *annotationLock) Identity() string   { return l.identity }
func (l *annotationLock) Describe() string   { return "routerules/default/leader of " + l.identity }

// candidate wants to lead until it is stopped.
type candidate struct {
	led, ended chan struct{} // closed when it leads, and when it gives up
	cancel     context.CancelFunc
	leaders    *atomic.Int64 // leaders among all candidates
}

// stand starts a candidate with a client of its own.
func stand(t *testing.T, rules dynamic.ResourceInterface, identity string, leaders *atomic.Int64, change func(*leaderelection.LeaderElectionConfig)) *candidate {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &candidate{make(chan struct{}), make(chan struct{}), cancel, leaders}
	config := leaderelection.LeaderElectionConfig{
		Lock:          &annotationLock{rules: rules, identity: identity},
		LeaseDuration: 2 * time.Minute, RenewDeadline: time.Minute, RetryPeriod: 20 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				if n := leaders.Add(1); n != 1 {
					t.Errorf("%s is one of %d leaders", identity, n)
				}
				close(c.led)
			},
			OnStoppedLeading: func() {},
		},
	}
	change(&config)
	elector, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		t.Fatal(err)
	}
	go func() { elector.Run(ctx); close(c.ended) }()
	t.Cleanup(func() { cancel(); <-c.ended })
	return c
}

// resign stops the leader's work, and then its candidacy.
func (c *candidate) resign() {
	c.leaders.Add(-1)
	c.cancel()
	<-c.ended
}

// TestLeaderElection checks with two candidates that when the leader goes, the
// other leads long before the first one's lease would have expired.
func TestLeaderElection(t *testing.T) {
	s := startShaken(t)
	var leaders atomic.Int64
	put := func(identity string) *candidate {
		return stand(t, s.client(s.back.URL).Resource(servertest.RuleResource).Namespace("default"), identity, &leaders,
			func(c *leaderelection.LeaderElectionConfig) { c.ReleaseOnCancel = true })
	}
	a, b := put("a"), put("b")
	for round := range 6 {
		select {
		case <-a.led:
		case <-b.led:
			a, b = b, a
		}
		select {
		case <-b.led:
			t.Fatal("both lead")
		default:
		}
		a.resign()
		<-b.led
		a, b = b, put(fmt.Sprint("c", round))
	}
	record, _, err := (&annotationLock{rules: s.writer.Namespace("default")}).Get(t.Context())
	if err != nil || record.LeaderTransitions != 6 {
		t.Errorf("the lock says %+v, %v", record, err)
	}
}

// TestLeaderIsCutOff checks that a leader without connection stops, and that
// another leads when its lease has expired.
func TestLeaderIsCutOff(t *testing.T) {
	if !*thorough {
		t.Skip("takes a lease: -thorough")
	}
	s := startShaken(t)
	var leaders atomic.Int64
	var cut atomic.Bool
	client, err := dynamic.NewForConfig(&rest.Config{Host: s.back.URL, WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return servertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			if cut.Load() {
				return nil, errors.New("cut off")
			}
			return next.RoundTrip(r)
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	brief := func(c *leaderelection.LeaderElectionConfig) {
		c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = 15*time.Second, 3*time.Second, time.Second
		c.Callbacks.OnStoppedLeading = func() { leaders.Add(-1) }
	}
	a := stand(t, client.Resource(servertest.RuleResource).Namespace("default"), "a", &leaders, brief)
	<-a.led
	b := stand(t, s.writer.Namespace("default"), "b", &leaders, brief)
	cut.Store(true)
	<-a.ended
	<-b.led
}
