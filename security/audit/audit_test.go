package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func event(user, verb, resource, namespace string) *Event {
	return &Event{Stage: StageComplete, User: user, Groups: []string{"shop"}, Verb: verb, Group: "config.istio.io", Resource: resource, Namespace: namespace, Path: "/x", Code: 200}
}

func TestPolicy(t *testing.T) {
	p, err := ParsePolicy([]byte(`apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, users: [robot], verbs: [update]}
- {level: Metadata, resources: [{group: config.istio.io, resources: [routerules, "routerules/*"]}], namespaces: [shop]}
- {level: Metadata, nonResourceURLs: [/metrics, "/debug*"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	refused := event("robot", "update", "routerules", "shop")
	refused.Code = 403
	path := &Event{Verb: "get", Path: "/debug/x", Code: 200}
	for name, tc := range map[string]struct {
		e            *Event
		asked, usual bool // by the policy, and without one
	}{
		"left out":          {event("robot", "update", "routerules", "shop"), false, true},
		"a refusal":         {refused, true, true},
		"a read":            {event("ada", "get", "routerules", "shop"), true, false},
		"another namespace": {event("ada", "update", "routerules", "bank"), false, true},
		"another resource":  {event("ada", "update", "gateways", "shop"), false, true},
		"a path":            {path, true, false},
		"a review":          {&Event{Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews", Code: 201}, false, false},
	} {
		if got := p.Decide(tc.e).IsWanted(tc.e); got != tc.asked {
			t.Errorf("%s: %v by the policy", name, got)
		}
		if got := (*Policy)(nil).Decide(tc.e).IsWanted(tc.e); got != tc.usual {
			t.Errorf("%s: %v without a policy", name, got)
		}
	}
	for text, want := range map[string]string{
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: request}]":                                              `rules[0].level: must be one of None, Metadata, Request, RequestResponse, found "request"`,
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [Begun]\nrules: [{level: None}]":                            `omitStages: must have only RequestReceived, ResponseStarted, ResponseComplete, Panic, found "Begun"`,
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, omitStages: [Begun]}]":                            "rules[0].omitStages: must have only",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []":                                                              "must have at least one",
		"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]":                                            "must be a Policy of audit.k8s.io/v1",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, user: [a]}]":                                      `unknown field "user"`,
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [/a], resources: [{group: a}]}]": "for resources or for nonResourceURLs",
	} {
		if _, err := ParsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestPolicyOfStagesAndFields checks which stages and fields the rules of a policy leave out.
func TestPolicyOfStagesAndFields(t *testing.T) {
	p, err := ParsePolicy([]byte(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: Request, users: [ada], omitStages: [ResponseStarted]}
- {level: RequestResponse, omitManagedFields: false}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		user              string
		stages            []string
		request, response bool
		omit              bool
	}{
		{"ada", []string{StageComplete}, true, false, true},
		{"eve", []string{StageStarted, StageComplete}, true, true, false},
	} {
		e := event(tc.user, "watch", "routerules", "shop")
		d := p.Decide(e)
		var got []string
		for _, e.Stage = range []string{StageReceived, StageStarted, StageComplete} {
			if d.IsWanted(e) {
				got = append(got, e.Stage)
			}
		}
		if !slices.Equal(got, tc.stages) || d.HasRequest() != tc.request || d.HasResponse() != tc.response || d.OmitManagedFields != tc.omit {
			t.Errorf("%s: %q, %+v", tc.user, got, d)
		}
		e.Code = 403
		if !d.IsWanted(e) {
			t.Errorf("%s: a refusal is left out", tc.user)
		}
	}
	if _, err := New(Options{File: "-", Strict: true, Policy: p}); err == nil || !strings.Contains(err.Error(), "must omit no stage") {
		t.Errorf("a strict log whose policy omits a stage: %v", err)
	}
}

// disk is a sink that may be full.
type disk struct {
	mu     sync.Mutex
	text   strings.Builder
	synced int // bytes
	syncs  int
	full   bool
}

func (d *disk) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		d.text.Write(text[:len(text)/2])
		return len(text) / 2, errors.New("no space left")
	}
	return d.text.Write(text)
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs++
	time.Sleep(time.Millisecond)
	if d.full {
		return errors.New("no space left")
	}
	d.synced = d.text.Len()
	return nil
}

func (d *disk) Close() error { return nil }

func (d *disk) fill(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// TestStrictLogIsOnDisk checks that each event is on the disk when Write returns, that events
// at the same time share a sync, and that a full disk is an error until it has room again.
func TestStrictLogIsOnDisk(t *testing.T) {
	to := &disk{}
	l := newLog(Options{Strict: true, Log: slog.New(slog.DiscardHandler)}, to)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	const writers, each = 50, 10
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				e := event("ada", "update", "routerules", "shop")
				if err := l.Write(t.Context(), e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if to.synced != to.text.Len() || strings.Count(to.text.String(), "\n") != writers*each {
		t.Errorf("%d of %d bytes are synced", to.synced, to.text.Len())
	}
	if to.syncs > writers*each/2 {
		t.Errorf("%d syncs for %d events of %d writers", to.syncs, writers*each, writers)
	}
	to.fill(true)
	if err := l.Write(t.Context(), event("ada", "update", "routerules", "shop")); err == nil {
		t.Error("an event on a full disk is acknowledged")
	}
	to.fill(false)
	if err := l.Write(t.Context(), event("eve", "update", "routerules", "shop")); err != nil {
		t.Errorf("with room again: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(to.text.String()), "\n")
	var last Event
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.User != "eve" {
		t.Errorf("the line after the broken one: %v %s", err, lines[len(lines)-1])
	}
	stop()
	<-ended
}

// small is a sink with room for so many bytes, like a full disk. It cuts off the rest of a
// write, and a sync succeeds unless syncs is set.
type small struct {
	text  bytes.Buffer
	room  int
	syncs error
}

func (s *small) Write(text []byte) (int, error) {
	if len(text) > s.room {
		s.text.Write(text[:s.room])
		n := s.room
		s.room = 0
		return n, errors.New("no space left")
	}
	s.room -= len(text)
	return s.text.Write(text)
}

func (s *small) Sync() error { return s.syncs }

func (s *small) Close() error { return nil }

// TestTornLines cuts a line off at each of its bytes, and makes room again after a while or at
// once. Every event that was acknowledged must be a line of its own.
func TestTornLines(t *testing.T) {
	whole, err := event("eve", "update", "routerules", "shop").Line()
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, time.Minute} {
		for _, syncs := range []error{nil, errors.New("the disk is broken")} {
			for room := range len(whole) + 1 {
				synctest.Test(t, func(t *testing.T) {
					to := &small{room: room, syncs: syncs}
					l := newLog(Options{Strict: true, Log: slog.New(slog.DiscardHandler)}, to)
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- l.Run(ctx) }()
					acknowledged := map[string]bool{}
					say := func(user string) {
						acknowledged[user] = l.Write(t.Context(), event(user, "update", "routerules", "shop")) == nil
					}
					say("eve")
					time.Sleep(wait)
					to.room, to.syncs = 1, nil // Room for the end of a line, and for no more.
					say("bob")
					time.Sleep(wait)
					to.room = 1 << 20
					say("ada")
					say("zoe")
					stop()
					<-ended
					if acknowledged["bob"] || !acknowledged["ada"] || !acknowledged["zoe"] {
						t.Fatalf("room for %d bytes: %v", room, acknowledged)
					}
					for line := range bytes.Lines(to.text.Bytes()) {
						var e Event
						if json.Unmarshal(line, &e) == nil {
							delete(acknowledged, e.User)
						}
					}
					for user, was := range acknowledged {
						if was {
							t.Errorf("room for %d bytes: the event of %s was acknowledged, and is no line:\n%s", room, user, to.text.String())
						}
					}
				})
			}
		}
	}
}

// TestLogGoesOnAfterACrash checks that a file that ends with a part of a line gets another one.
func TestLogGoesOnAfterACrash(t *testing.T) {
	for text, want := range map[string]string{"": "", "{}\n": "{}\n", `{"user":"e`: `{"user":"e` + "\n"} {
		file := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := New(Options{File: file, Strict: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		e := event("ada", "update", "routerules", "shop")
		if err := l.Write(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		stop()
		<-ended
		line, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want+string(line) {
			t.Errorf("after %q: %v %q", text, err, got)
		}
	}
}

// TestLogThatIsNotStrictHoldsNobodyUp checks that a disk that hangs costs events and no time.
func TestLogThatIsNotStrictHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		l := newLog(Options{Log: slog.New(slog.DiscardHandler), Registry: reg}, &disk{}) // Nothing runs it.
		began := time.Now()
		for range queued {
			if err := l.Write(t.Context(), event("ada", "update", "routerules", "shop")); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Write(t.Context(), event("eve", "update", "routerules", "shop")); err == nil {
			t.Error("an event more than may wait is taken")
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
		if got := testutil.ToFloat64(l.lost); got != 1 {
			t.Errorf("%v events are lost, want 1", got)
		}
	})
}

// TestLongLinesTakeBoundedMemory checks that events with long objects do not wait for a disk that
// hangs without a bound on their bytes, and that the room comes back.
func TestLongLinesTakeBoundedMemory(t *testing.T) {
	for _, strict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			to := &disk{}
			l := newLog(Options{Strict: strict, Log: slog.New(slog.DiscardHandler)}, to) // Nothing runs it yet.
			e := event("ada", "update", "routerules", "shop")
			e.RequestObject = json.RawMessage(`"` + strings.Repeat("a", MostObject-2) + `"`)
			var all sync.WaitGroup
			refused := make(chan error, 2*queuedBytes/MostObject)
			for range cap(refused) {
				one := *e
				all.Go(func() { refused <- l.Write(t.Context(), &one) })
			}
			synctest.Wait()
			l.write(<-l.lines) // With all that wait behind it.
			if waited := to.text.Len(); waited > queuedBytes || waited < queuedBytes/2 {
				t.Errorf("strict: %v: %d bytes waited", strict, waited)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- l.Run(ctx) }()
			all.Wait()
			if err := l.Write(t.Context(), e); err != nil {
				t.Errorf("strict: %v: with room again: %v", strict, err)
			}
			stop()
			<-ended
		})
	}
}

// TestLogIsRotated checks that all lines are in the file and in those before it, and that
// nobody else may read them.
func TestLogIsRotated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	l, err := New(Options{File: file, Strict: true, MaxMegabytes: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	e := event(strings.Repeat("a", 100_000), "update", "routerules", "shop")
	const events = 25
	for range events {
		if err := l.Write(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	<-ended
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	if err != nil || len(files) < 3 {
		t.Errorf("files %q, %v", files, err)
	}
	lines := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(text), "\n")
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", name, info.Mode())
		}
	}
	if lines != events {
		t.Errorf("%d lines, want %d", lines, events)
	}
}

// FuzzLine looks for an event that is not exactly one line of JSON.
func FuzzLine(f *testing.F) {
	f.Add("a\nb", "\x00\u2028", "\xff")
	f.Fuzz(func(t *testing.T, user, name, agent string) {
		e := &Event{User: user, Name: name, UserAgent: agent, Path: "/" + name, Groups: []string{user}}
		line, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(line), "\n") != 1 || !json.Valid(line) {
			t.Errorf("%q", line)
		}
	})
}
