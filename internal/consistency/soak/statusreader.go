package main

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/consistency/programmed"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// statusReader asks servers what proxies run, and records the answers.
type statusReader struct {
	random  *rand.Rand
	http    *http.Client
	servers []string
	told    *told
	keys    []schema.Key
}

// withStatus is an object of an answer.
type withStatus struct {
	document
	Status schema.Status `json:"status"`
}

// said returns what the status of an object says.
func (d *withStatus) said(kind, server string, fresh bool, call, until time.Duration) programmed.Status {
	v := d.version(kind)
	number, _ := strconv.Atoi(v.Value)
	c := meta.FindStatusCondition(d.Status.Conditions, schema.ConditionProgrammed)
	if c == nil {
		c = &metav1.Condition{}
	}
	return programmed.Status{
		Server: server, Key: v.Key, Number: number, Fresh: fresh, Call: call, Return: until,
		True: c.Status == metav1.ConditionTrue, Message: c.Message,
		Running: d.Status.Programmed.Running,
	}
}

// run asks one question after the other.
func (r *statusReader) run(ctx context.Context, pace float64) {
	for ctx.Err() == nil {
		switch n := r.random.IntN(10); {
		case n < 4:
			r.get(ctx, pick(r.random, r.keys), r.random.IntN(2) == 0)
		case n < 7:
			r.list(ctx, pick(r.random, markedScopes()))
		default:
			r.proxies(ctx)
		}
		sleep(ctx, time.Duration(pace*r.random.Float64()*float64(200*time.Millisecond)))
	}
}

// ask sends a request to any server. answer is nil if there is none.
func (r *statusReader) ask(ctx context.Context, target string) (server string, answer []byte, call, until time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	server = pick(r.random, r.servers)
	call = r.told.now()
	status, answer, err := send(ctx, r.http, http.MethodGet, server+target, "", nil)
	if err != nil || status != http.StatusOK {
		return server, nil, call, r.told.now()
	}
	return server, answer, call, r.told.now()
}

func freshness(fresh bool) string {
	if fresh {
		return "?freshStatus=true"
	}
	return ""
}

// get reads one object. It returns what its status says, or nil if there is no answer.
func (r *statusReader) get(ctx context.Context, key schema.Key, fresh bool) *programmed.Status {
	server, answer, call, until := r.ask(ctx, path(scopeOf(key))+freshness(fresh))
	var d withStatus
	if answer == nil || json.Unmarshal(answer, &d) != nil {
		return nil
	}
	said := d.said(key.Kind, server, fresh, call, until)
	r.told.said(said)
	return &said
}

// wait asks for the fresh status of an object until all proxies are said to run it, or ctx ends.
// It returns the last answer, or nil if there was none.
func (r *statusReader) wait(ctx context.Context, key schema.Key) (last *programmed.Status) {
	for ctx.Err() == nil && (last == nil || !last.True) {
		if said := r.get(ctx, key, true); said != nil {
			last = said
		}
		sleep(ctx, 20*time.Millisecond)
	}
	return last
}

// isMarked reports whether an object has a mark.
func (d *withStatus) isMarked() bool { return d.Metadata.Annotations[valueKey] != "" }

// list reads a collection. It returns the revision of the list, or 0 if there is none.
func (r *statusReader) list(ctx context.Context, scope store.Scope) (revision int64) {
	server, answer, call, until := r.ask(ctx, path(scope))
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []withStatus
	}
	if answer == nil || json.Unmarshal(answer, &list) != nil {
		return 0
	}
	var all []programmed.Status
	for _, d := range list.Items {
		if d.isMarked() {
			all = append(all, d.said(scope.Kind.Kind, server, false, call, until))
		}
	}
	r.told.said(all...)
	revision, _ = strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64)
	return revision
}

// proxies reads the list of proxies, as istioctl proxy-status does.
func (r *statusReader) proxies(ctx context.Context) {
	target := "/apis/registry.istio.io/v1/proxies"
	if r.random.IntN(3) == 0 {
		target += "?object=" + slashed(pick(r.random, r.keys))
	}
	server, answer, call, until := r.ask(ctx, target)
	var list []struct {
		Node, State string
		Revision    int64
	}
	if answer == nil || json.Unmarshal(answer, &list) != nil {
		return
	}
	var all []programmed.Shown
	for _, p := range list {
		if p.State == "" {
			all = append(all, programmed.Shown{Server: server, Proxy: p.Node, Revision: p.Revision, Call: call, Return: until})
		}
	}
	r.told.shown(all)
}

// watch follows the statuses of a collection. After each end of a watch it lists again.
func (r *statusReader) watch(ctx context.Context, scope store.Scope, pace float64) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, time.Duration(pace*(1+r.random.Float64()*20)*float64(time.Second)))
		r.follow(limited, scope)
		cancel()
		sleep(ctx, 50*time.Millisecond)
	}
}

func (r *statusReader) follow(ctx context.Context, scope store.Scope) {
	after := r.list(ctx, scope)
	if after == 0 {
		return
	}
	server := pick(r.random, r.servers)
	req, err := watchRequest(ctx, server+path(scope), after, false)
	if err != nil {
		return
	}
	resp, err := openWatch(r.http, req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var f struct {
			Type   string
			Object withStatus
		}
		if json.Unmarshal(line, &f) != nil || f.Type == store.ErrorFrame {
			return
		}
		if (f.Type == string(store.Added) || f.Type == string(store.Modified)) && f.Object.isMarked() {
			now := r.told.now()
			r.told.said(f.Object.said(scope.Kind.Kind, server, false, now, now))
		}
	}
}
