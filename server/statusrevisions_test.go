package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/servertest"
	statuses "github.com/pilot-api/pilot-api/server/status"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	leaders "github.com/pilot-api/pilot-api/store/etcd/register"
)

// keeperOf is the Keeper of one of several servers.
type keeperOf struct {
	objects *etcd.Store
	client  *clientv3.Client
}

func (k keeperOf) Lead(ctx context.Context) (statuses.Writer, error) {
	lead, err := leaders.Lead(ctx, k.client, etcd.DefaultPrefix, "statuses", "one")
	if err != nil {
		return nil, err
	}
	to, err := k.objects.StatusWriter(ctx, lead.Holds())
	return leading{to, lead}, err
}

type leading struct {
	*etcd.StatusWriter
	lead *leaders.Leadership
}

func (l leading) Lost() <-chan struct{} { return l.lead.Lost() }
func (l leading) Close()                { l.lead.Resign() }

// keepingReplica returns a server over a store that keeps statuses, with the service
// reviews.
func keepingReplica(t *testing.T, client *clientv3.Client) *servertest.World {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	objects := etcd.New(client, etcd.DefaultPrefix, quiet)
	if err := objects.KeepStatuses(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	view := cache.New(objects, cache.Options{Log: quiet})
	objects.Guess(view.Peek)
	proxies := discovery.New(discovery.Options{Source: view})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() { _ = view.Run(ctx) })
	running.Go(func() { _ = proxies.Run(ctx) })
	w := servertest.Start(t, func(o *server.Options) { o.Store, o.Reads, o.Discovery = store.Strict(objects), view, proxies })
	w.Discovery = proxies
	running.Go(func() { _ = w.Server.RecordStatuses(ctx, keeperOf{objects, client}) })
	w.Do("POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
	w.Want(http.StatusOK, "GET", "/debug/problems", "")
	return w
}

// TestVersionsOfStatuses checks that a status is a new version of its object, everywhere
// the same, and that a condition on any version since the last write holds, at every
// replica and for every sort of write, until somebody writes.
func TestVersionsOfStatuses(t *testing.T) {
	outside.Slow(t)
	client := etcdtest.Start(t).Client()
	w := keepingReplica(t, client)
	far := keepingReplica(t, client)
	w.Connect(1)
	seen := w.Watch("")
	path := servertest.RulesPath + "/split"
	// written returns the versions of a fresh write and of a later status.
	written := func() (own, later string) {
		t.Helper()
		w.Do("DELETE", path, "")
		own = w.Create("split").Metadata.ResourceVersion
		for {
			f, ok := seen.Next()
			if !ok {
				t.Fatal("the watch ended")
			}
			var o servertest.Object
			if err := json.Unmarshal(f.Object, &o); err != nil {
				t.Fatal(err)
			}
			if o.Metadata.Name == "split" && revision(t, o.Metadata.ResourceVersion) > revision(t, own) && f.Type == "MODIFIED" && servertest.StatusIn(t, f.Object).Reason() == "Programmed" {
				return own, o.Metadata.ResourceVersion
			}
		}
	}
	own, later := written()

	got := w.Want(http.StatusOK, "GET", path+"?resourceVersion="+later, "")
	if got.Object(t).Metadata.ResourceVersion != later || servertest.StatusIn(t, []byte(got.Text)).Reason() != "Programmed" {
		t.Errorf("read at %s: %s", later, got.Text)
	}
	if other := far.Want(http.StatusOK, "GET", path+"?resourceVersion="+later, ""); other.Text != got.Text || other.Header.Get("ETag") != got.Header.Get("ETag") {
		t.Errorf("another replica has %s, want %s", other.Text, got.Text)
	}
	w.Want(http.StatusNotModified, "GET", path, "", "If-None-Match: "+got.Header.Get("ETag"))
	exact := "?resourceVersionMatch=Exact&resourceVersion="
	if list := w.Want(http.StatusOK, "GET", servertest.RulesPath+exact+later, ""); !strings.Contains(list.Text, `"resourceVersion":"`+later+`"`) || !strings.Contains(list.Text, `"reason":"Programmed"`) {
		t.Errorf("list at %s: %s", later, list.Text)
	}
	if list := far.Want(http.StatusOK, "GET", servertest.RulesPath+exact+own, ""); strings.Contains(list.Text, `"resourceVersion":"`+later+`"`) || !strings.Contains(list.Text, `"reason":"Pending"`) {
		t.Errorf("list at %s: %s", own, list.Text)
	}
	if fresh := w.Want(http.StatusOK, "GET", path+"?freshStatus=true", ""); fresh.Object(t).Metadata.ResourceVersion != own || servertest.StatusIn(t, []byte(fresh.Text)).Reason() != "Programmed" {
		t.Errorf("fresh: %s", fresh.Text)
	}
	if same := w.Want(http.StatusOK, "PUT", path, servertest.Rule("split", 10), servertest.AsYAML); revision(t, same.Object(t).Metadata.ResourceVersion) < revision(t, later) {
		t.Errorf("a PUT that changes nothing went back to %s", same.Text)
	}

	with := func(version string) string {
		return servertest.Rule("split", 60, "resourceVersion: '"+version+"'")
	}
	in := func(version string) string {
		return `{"verb":"patch","target":{"kind":"RouteRule","namespace":"default","name":"split"},"patch":{"spec":{"precedence":61}},"preconditions":{"resourceVersion":"` + version + `"}}`
	}
	for name, write := range map[string]func(at *servertest.World, code int, version string){
		"PUT": func(at *servertest.World, code int, version string) {
			at.Want(code, "PUT", path, with(version), servertest.AsYAML)
		},
		"PUT If-Match": func(at *servertest.World, code int, version string) {
			at.Want(code+3*(code/409), "PUT", path, servertest.Rule("split", 60), servertest.AsYAML, `If-Match: "`+version+`-0"`)
		},
		"PATCH": func(at *servertest.World, code int, version string) {
			at.Want(code, "PATCH", path, `{"metadata":{"resourceVersion":"`+version+`"},"spec":{"precedence":62}}`, servertest.MergePatch)
		},
		"PATCH If-Match": func(at *servertest.World, code int, version string) {
			at.Want(code+3*(code/409), "PATCH", path, `{"spec":{"precedence":63}}`, servertest.MergePatch, `If-Match: "`+version+`-0"`)
		},
		"apply If-Match": func(at *servertest.World, code int, version string) {
			at.Want(code+3*(code/409), "PATCH", path+"?fieldManager=me&force=true", servertest.Rule("split", 64), "Content-Type: application/apply-patch+yaml", `If-Match: "`+version+`-0"`)
		},
		"DELETE": func(at *servertest.World, code int, version string) {
			at.Want(code, "DELETE", path, `{"preconditions":{"resourceVersion":"`+version+`"}}`, servertest.AsJSON)
		},
		"dry run": func(at *servertest.World, code int, version string) {
			at.Want(code, "PUT", path+"?dryRun=All", with(version), servertest.AsYAML)
		},
		"transaction": func(at *servertest.World, code int, version string) {
			if code == http.StatusOK {
				code = http.StatusCreated
			}
			at.Want(code, "POST", servertest.Transactions, `{"spec":{"operations":[`+in(version)+`]}}`, servertest.AsJSON)
		},
	} {
		for _, at := range []*servertest.World{w, far} {
			own, later := written()
			between := strconv.FormatInt((revision(t, own)+revision(t, later))/2, 10)
			older, future := strconv.FormatInt(revision(t, own)-1, 10), strconv.FormatInt(revision(t, later)+1000, 10)
			for _, wrong := range []string{older, future} {
				if name == "apply If-Match" || strings.Contains(name, "If-Match") && wrong == future {
					continue
				}
				write(at, http.StatusConflict, wrong)
			}
			for _, right := range []string{own, between, later} {
				if name != "dry run" && right != later {
					continue // A write ends its condition.
				}
				write(at, http.StatusOK, right)
			}
			if name == "dry run" || name == "DELETE" {
				continue
			}
			write(at, http.StatusConflict, own)
			t.Logf("%s: written at %s, condition %s", name, own, later)
		}
	}
}

// TestInformersSeeStatuses checks that unmodified informers of client-go which wait for
// Programmed=True see it, and before that Pending, although their connections break, the
// server is replaced, and what they lack is compacted. At the end they have what the server
// has, and no version ever repeated or went back (see told).
func TestInformersSeeStatuses(t *testing.T) {
	outside.Slow(t)
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("WatchList=%v", watchList), func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, watchList)
			s := shake(t, &shaken{T: t, etcd: etcdtest.Start(t).Client(), statuses: true})
			w := &servertest.World{T: t, URL: s.back.URL}
			w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
			seesStatuses(t, s, []*following{s.follow("", ""), s.follow("default", "team=red")})
		})
	}
}

func seesStatuses(t *testing.T, s *shaken, informers []*following) {
	rules, known := s.writer.Namespace("default"), ruleObject("mark", "red", 1)
	known, err := rules.Create(t.Context(), known, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var p *simulated.Proxy
	for round, fault := range []func(){
		func() {},
		s.cut,
		func() {
			before := s.there.Swap(s.newServer())
			s.cut() // Otherwise watches stay with the server of before, which learns nothing.
			before.stop()
		},
		s.cut,
		func() {
			s.expire(func() error {
				_, err := rules.Patch(t.Context(), "mark", "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
				return err
			})
		},
		func() {},
	} {
		fault()
		if p != nil {
			p.Leave()
		}
		p = nil
		for p == nil {
			if p, err = simulated.Connect(s.there.Load().discovery, simulated.Node(1)); err != nil && !errors.Is(err, discovery.ErrNotReady) {
				t.Fatal(err)
			}
		}
		p.Hold()
		next := ruleObject("mark", "red", 10+round)
		if round == 1 || round == 3 { // A client that knows the object by its watch may write it.
			next.SetResourceVersion(known.GetResourceVersion())
		}
		if next, err = rules.Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, i := range informers {
			i.awaitProgrammed(next, metav1.ConditionFalse)
		}
		p.Accept()
		for _, i := range informers {
			known = i.awaitProgrammed(next, metav1.ConditionTrue)
		}
	}
	p.Leave()
	for _, i := range informers {
		for diff := "?"; diff != ""; {
			listed, err := s.writer.Namespace(i.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: i.labels})
			if err != nil {
				t.Fatal(err)
			}
			i.told.mu.Lock()
			diff = cmp.Diff(toldOf(listed.Items), toldOf(i.stored()))
			i.told.mu.Unlock()
		}
	}
}

// awaitProgrammed waits until the informer has an object of that generation or later with a
// status of the condition that is about it, and returns it.
func (f *following) awaitProgrammed(o *unstructured.Unstructured, want metav1.ConditionStatus) *unstructured.Unstructured {
	f.told.mu.Lock()
	defer f.told.mu.Unlock()
	for {
		for _, have := range f.stored() {
			if have.GetName() != o.GetName() || have.GetGeneration() < o.GetGeneration() {
				continue
			}
			text, err := have.MarshalJSON()
			if err != nil {
				f.Fatal(err)
			}
			c := servertest.StatusIn(f.T, text).Condition("Programmed")
			if c.Status == want && c.Reason != "NoProxies" && c.ObservedGeneration == have.GetGeneration() {
				return &have
			}
		}
		f.told.news.Wait()
	}
}

func (f *following) stored() (all []unstructured.Unstructured) {
	for _, o := range f.informer.GetStore().List() {
		all = append(all, *o.(*unstructured.Unstructured))
	}
	return all
}

// toldOf returns the versions of objects and their statuses.
func toldOf(objs []unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for _, o := range objs {
		all[o.GetNamespace()+"/"+o.GetName()] = []any{o.GetResourceVersion(), o.Object["status"]}
	}
	return all
}

// TestKubectlWatchesStatuses uses kubectl where the store keeps statuses.
func TestKubectlWatchesStatuses(t *testing.T) {
	outside.Slow(t)
	withTool(t, "kubectl")
	w := keepingReplica(t, etcdtest.Start(t).Client())
	w.Connect(1)
	runScriptsAt(t, "testdata/script/statusrevisions", func(*testscript.Env) string { return w.URL })
}
