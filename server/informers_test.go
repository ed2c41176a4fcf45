package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

var thorough = flag.Bool("thorough", false, "tests with client-go take minutes: informers follow 20,000 changes, a leader is cut off")

const (
	changers     = 4   // concurrent writers
	roundChanges = 200 // of all of them between two comparisons
	cutEvery     = 40  // changes by one of them
)

// TestInformersThroughFaults checks that informers of client-go have what the
// server has, whenever they have seen the newest change, although their connections
// break during changes and transactions, the server is replaced, and the changes
// that they lack are compacted. It checks informers that list and informers that
// fill their stores by a watch.
func TestInformersThroughFaults(t *testing.T) {
	outside.Slow(t)
	changes := roundChanges
	if *thorough {
		changes = 20_000
	}
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("WatchList=%v", watchList), func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, watchList)
			followThroughFaults(t, changes)
		})
	}
}

func followThroughFaults(t *testing.T, changes int) {
	s := startShaken(t)
	informers := []*following{
		s.follow("", ""),
		s.follow("default", ""),
		s.follow("", "team=red"),
	}
	var group []*changer
	for i := range changers {
		group = append(group, &changer{shaken: s, id: i, rand: rand.New(rand.NewPCG(uint64(i), 1)), mine: map[string]*unstructured.Unstructured{}})
	}
	for round := range changes / roundChanges {
		var all errgroup.Group
		for _, c := range group {
			all.Go(func() error { return c.change(roundChanges / changers) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		if round%8 == 0 {
			before := s.states.Load()
			s.expire(func() error { return group[round/8%changers].change(10) })
			s.compare(informers)
			if s.states.Load() < before+int64(len(informers)) {
				t.Errorf("after a compaction %d of %d informers asked for the state", s.states.Load()-before, len(informers))
			}
		}
		s.compare(informers)
	}
	t.Logf("%d changes, %d connections cut, %d compactions, %d states asked for, %d comparisons",
		s.changes.Load(), s.cuts.Load(), s.compactions, s.states.Load(), s.comparisons)
}

// shaken is a server over an etcd. At front its connections break, and it is
// replaced now and then; at back nobody notices.
type shaken struct {
	*testing.T
	etcd        *clientv3.Client
	objects     *etcd.Store
	front, back *httptest.Server
	there       atomic.Pointer[running]
	gate        atomic.Pointer[chan struct{}] // at front; open when closed
	statuses    bool                          // the store keeps them, and there are proxies

	writer                         dynamic.NamespaceableResourceInterface
	changes, cuts, states          atomic.Int64
	compactions, comparisons, mark int
}

// running is one server and its cache.
type running struct {
	http.Handler
	discovery *discovery.Publisher // nil without proxies
	stop      func()
}

func startShaken(t *testing.T) *shaken {
	t.Helper()
	return shake(t, &shaken{T: t, etcd: etcdtest.Start(t).Client()})
}

// shake starts the server of s.
func shake(t *testing.T, s *shaken) *shaken {
	t.Helper()
	s.objects = etcd.New(s.etcd, etcd.DefaultPrefix, slog.New(slog.DiscardHandler))
	if s.statuses {
		if err := s.objects.KeepStatuses(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	s.there.Store(s.newServer())
	t.Cleanup(func() { s.there.Load().stop() })
	open := make(chan struct{})
	close(open)
	s.gate.Store(&open)
	s.front = httptest.NewServer(http.HandlerFunc(s.atFront))
	t.Cleanup(s.front.Close)
	s.back = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.there.Load().ServeHTTP(w, r) }))
	t.Cleanup(s.back.Close)
	s.writer = s.client(s.back.URL).Resource(servertest.RuleResource)
	return s
}

func (s *shaken) client(url string) dynamic.Interface {
	client, err := dynamic.NewForConfig(&rest.Config{Host: url, QPS: -1})
	if err != nil {
		s.Fatal(err)
	}
	return client
}

func (s *shaken) newServer() *running {
	quiet := slog.New(slog.DiscardHandler)
	view := cache.New(s.objects, cache.Options{Log: quiet})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- view.Run(ctx) }()
	if err := view.WaitForSync(s.Context()); err != nil {
		s.Error(err)
	}
	opts := server.Options{Store: store.Strict(s.objects), Reads: view, Log: quiet}
	if !s.statuses {
		return &running{Handler: server.New(opts).Handler(), stop: func() { cancel(); <-ended }}
	}
	opts.Discovery = discovery.New(discovery.Options{Source: view})
	one := server.New(opts)
	var beside sync.WaitGroup
	beside.Go(func() { _ = opts.Discovery.Run(ctx) })
	beside.Go(func() { _ = one.RecordStatuses(ctx, keeperOf{s.objects, s.etcd}) })
	return &running{one.Handler(), opts.Discovery, func() { cancel(); <-ended; beside.Wait() }}
}

func (s *shaken) atFront(w http.ResponseWriter, r *http.Request) {
	select {
	case <-*s.gate.Load():
	case <-r.Context().Done():
		return
	}
	if q := r.URL.Query(); q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
		s.states.Add(1)
	}
	s.there.Load().ServeHTTP(w, r)
}

// cut breaks all connections at front.
func (s *shaken) cut() {
	s.cuts.Add(1)
	s.front.CloseClientConnections()
}

// expire cuts the informers off during a change, and then lets them connect to
// another server, which cannot tell them the change: etcd has compacted it.
func (s *shaken) expire(change func() error) {
	s.Helper()
	shut := make(chan struct{})
	s.gate.Store(&shut)
	defer close(shut)
	s.cut()
	if err := change(); err != nil {
		s.Fatal(err)
	}
	newest, err := s.objects.Revision(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.etcd.Compact(s.Context(), newest); err != nil {
		s.Fatal(err)
	}
	s.there.Swap(s.newServer()).stop()
	s.compactions++
}

// compare waits until each informer has seen the end of all changes, and checks
// that it has what the server has. An informer reports the objects of an initial
// state in any order, so compare waits for one mark before it makes a second.
func (s *shaken) compare(informers []*following) {
	s.Helper()
	for range 2 {
		marked := s.makeMark()
		for _, i := range informers {
			i.await(marked)
		}
	}
	for _, i := range informers {
		listed, err := s.writer.Namespace(i.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: i.labels})
		if err != nil {
			s.Fatal(err)
		}
		want := map[string]string{}
		for _, o := range listed.Items {
			want[o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
		got := map[string]string{}
		for _, o := range i.informer.GetStore().List() {
			o := o.(*unstructured.Unstructured)
			got[o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.Fatalf("store of %s (-server +informer):\n%s", i, diff)
		}
		if diff := cmp.Diff(want, i.told.state()); diff != "" {
			s.Fatalf("what handlers of %s were told (-server +handlers):\n%s", i, diff)
		}
	}
	s.comparisons++
}

// makeMark changes an object that all informers follow.
func (s *shaken) makeMark() *unstructured.Unstructured {
	s.Helper()
	s.mark++
	rules, mark := s.writer.Namespace("default"), ruleObject("mark", "red", s.mark)
	var err error
	if s.mark == 1 {
		mark, err = rules.Create(s.Context(), mark, metav1.CreateOptions{})
	} else {
		mark, err = rules.Update(s.Context(), mark, metav1.UpdateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
	return mark
}

// changer writes objects of its own, one by one or several at once.
type changer struct {
	*shaken
	id     int
	rand   *rand.Rand
	mine   map[string]*unstructured.Unstructured
	writes int
}

var teams = []string{"red", "blue"}

func (c *changer) change(n int) error {
	for range n {
		if c.writes++; c.writes%cutEvery == 0 {
			c.cut()
		}
		if err := c.write(); err != nil {
			return err
		}
		c.changes.Add(1)
	}
	return nil
}

func (c *changer) write() error {
	name := fmt.Sprintf("%d-%d", c.id, c.rand.IntN(12))
	rules := c.writer.Namespace([]string{"default", "books"}[c.id%2])
	known := c.mine[name]
	next := ruleObject("r"+name, teams[c.rand.IntN(2)], c.writes)
	var err error
	switch ctx := c.Context(); {
	case known == nil:
		c.mine[name], err = rules.Create(ctx, next, metav1.CreateOptions{})
	case c.rand.IntN(4) == 0:
		delete(c.mine, name)
		err = rules.Delete(ctx, known.GetName(), metav1.DeleteOptions{})
	case c.rand.IntN(4) == 0:
		err = c.writeTogether(rules)
	default:
		next.SetResourceVersion(known.GetResourceVersion())
		c.mine[name], err = rules.Update(ctx, next, metav1.UpdateOptions{})
	}
	return err
}

// writeTogether changes all its objects in one transaction, and deletes one.
func (c *changer) writeTogether(rules dynamic.ResourceInterface) error {
	var operations []map[string]any
	for name, o := range c.mine {
		if len(operations) == 0 {
			operations = append(operations, map[string]any{"verb": "delete", "target": map[string]any{"kind": "RouteRule", "namespace": o.GetNamespace(), "name": o.GetName()}})
			delete(c.mine, name)
			continue
		}
		next := ruleObject(o.GetName(), teams[c.rand.IntN(2)], c.writes)
		next.SetNamespace(o.GetNamespace())
		operations = append(operations, map[string]any{"verb": "update", "object": next})
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"operations": operations}})
	if err != nil {
		return err
	}
	resp, err := http.Post(c.back.URL+"/apis/registry.istio.io/v1/transactions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return errors.New("transaction: " + resp.Status)
	}
	for name, o := range c.mine {
		if c.mine[name], err = rules.Get(c.Context(), o.GetName(), metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// ruleObject returns a rule that differs from others of its name by a number.
func ruleObject(name, team string, number int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.istio.io/v1alpha2", "kind": "RouteRule",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"team": team}},
		"spec":     map[string]any{"destination": map[string]any{"name": "reviews"}, "precedence": int64(number)},
	}}
}

// following is an informer, and what its handlers received.
type following struct {
	*shaken
	namespace, labels string
	informer          toolscache.SharedIndexInformer
	told              *told
}

func (f *following) String() string {
	return fmt.Sprintf("namespace %q, labels %q", f.namespace, f.labels)
}

// follow starts an informer over the connections that break.
func (s *shaken) follow(namespace, labels string) *following {
	s.Helper()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.client(s.front.URL), 0, namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = labels })
	f := &following{s, namespace, labels, factory.ForResource(servertest.RuleResource).Informer(), newTold(s.T)}
	if _, err := f.informer.AddEventHandler(f.told); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	factory.Start(ctx.Done())
	s.Cleanup(func() { cancel(); factory.Shutdown() })
	if !toolscache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
		s.Fatal("the informer never synced")
	}
	return f
}

// await returns when store and handlers have a version of an object.
func (f *following) await(o *unstructured.Unstructured) {
	f.told.mu.Lock()
	defer f.told.mu.Unlock()
	for f.told.objects[o.GetNamespace()+"/"+o.GetName()] != o.GetResourceVersion() {
		f.told.news.Wait()
	}
}

// told is what handlers know. It checks the events that they receive.
type told struct {
	t       *testing.T
	mu      sync.Mutex
	news    *sync.Cond
	objects map[string]string // resourceVersions by name
}

func newTold(t *testing.T) *told {
	f := &told{t: t, objects: map[string]string{}}
	f.news = sync.NewCond(&f.mu)
	return f
}

func (f *told) state() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.objects)
}

func (f *told) OnAdd(o any, _ bool) { f.set(o.(*unstructured.Unstructured), false) }

func (f *told) OnUpdate(_, o any) { f.set(o.(*unstructured.Unstructured), true) }

func (f *told) set(o *unstructured.Unstructured, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := o.GetNamespace() + "/" + o.GetName()
	before, was := f.objects[key]
	if was != known {
		f.t.Errorf("%s: an update is %v, and it was known: %v", key, known, was)
	}
	if revision(f.t, before) > revision(f.t, o.GetResourceVersion()) {
		f.t.Errorf("%s: told %s after %s", key, o.GetResourceVersion(), before)
	}
	f.objects[key] = o.GetResourceVersion()
	f.news.Broadcast()
}

func (f *told) OnDelete(o any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		f.t.Error(err)
	}
	delete(f.objects, key) // It may be gone: if a watch broke in a transaction, all of it is sent again.
	f.news.Broadcast()
}

// revision returns 0 for no object.
func revision(t *testing.T, text string) int64 {
	n, err := strconv.ParseInt("0"+text, 10, 64)
	if err != nil {
		t.Error(err)
	}
	return n
}
