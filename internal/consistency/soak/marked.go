package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/internal/consistency/programmed"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// markHeader is the header of requests that shows which write of a VirtualService is in force.
const markHeader = "x-mark"

const (
	webs = 3 // services with HTTP in each namespace
	tcps = 2 // services without
	// Numbers of writes are added to these.
	connectTimeoutBase = 10_000  // milliseconds
	idleTimeoutBase    = 100_000 // seconds
)

// marked is an object whose writes proxies can distinguish.
type marked struct {
	schema.Key
	index int // of its service among those of its kind
	// fixed objects are neither deleted nor hidden.
	fixed bool
}

// markedObjects returns the objects, and the constant ones that they need.
func markedObjects() (all []*marked, constant [][]byte) {
	for n, namespace := range namespaces {
		for i := range webs {
			name, index := fmt.Sprintf("web%d", i), n*webs+i
			for _, kind := range []string{"VirtualService", "DestinationRule", "ServiceEntry"} {
				key := schema.Key{Kind: kind, Namespace: namespace, Name: name}
				all = append(all, &marked{key, index, kind == "ServiceEntry"})
			}
		}
		for i := range tcps {
			name, index := fmt.Sprintf("tcp%d", i), n*tcps+i
			all = append(all, &marked{schema.Key{Kind: "DestinationRule", Namespace: namespace, Name: name}, index, false})
			constant = append(constant, manifest(schema.Key{Kind: "ServiceEntry", Namespace: namespace, Name: name}, "", 0, fmt.Sprintf(
				`{"hosts":[%q],"addresses":["10.9.0.%d"],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":9000,"name":"tcp","protocol":"TCP"}],"endpoints":[{"address":"10.8.0.%d"}]}`,
				hostOf(namespace, name), 1+index, 1+index)))
		}
	}
	return all, constant
}

// slashed returns KIND/NAMESPACE/NAME.
func slashed(key schema.Key) string { return key.Kind + "/" + key.Namespace + "/" + key.Name }

func hostOf(namespace, name string) string { return name + "." + namespace + ".example" }

// serviceOf returns the namespace and name in a host, or in a name that begins with a host.
func serviceOf(text string) (namespace, name string, ok bool) {
	host, _, _ := strings.Cut(strings.TrimPrefix(text, "out."), "|")
	parts := strings.Split(host, ".")
	if len(parts) != 3 || !slices.Contains(namespaces, parts[1]) {
		return "", "", false
	}
	return parts[1], parts[0], true
}

// spec returns the spec of a write.
func (m *marked) spec(w programmed.Write) string {
	host, exportTo := hostOf(m.Namespace, m.Name), "*"
	if w.Private {
		exportTo = "."
	}
	switch m.Kind {
	case "VirtualService":
		return fmt.Sprintf(`{"hosts":[%q],"exportTo":[%q],"http":[{"headers":{"request":{"set":{%q:%q}}},"route":[{"destination":{"host":%[1]q}}]}]}`,
			host, exportTo, markHeader, slashed(m.Key)+"/"+strconv.Itoa(w.Number))
	case "ServiceEntry":
		return fmt.Sprintf(`{"hosts":[%q],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.%d.%d.%d"}]}`,
			host, 100+m.index, w.Number/250, 1+w.Number%250)
	}
	limit := fmt.Sprintf(`"connectTimeout":"%d.%03ds"`, (connectTimeoutBase+w.Number)/1000, (connectTimeoutBase+w.Number)%1000)
	if strings.HasPrefix(m.Name, "tcp") {
		limit = fmt.Sprintf(`"idleTimeout":"%ds"`, idleTimeoutBase+w.Number)
	}
	return fmt.Sprintf(`{"host":%q,"exportTo":[%q],"trafficPolicy":{"connectionPool":{"tcp":{%s}}}}`, host, exportTo, limit)
}

func manifest(key schema.Key, value string, expect int64, spec string) []byte {
	kind, _ := schema.KindByName(key.Kind)
	d := document{APIVersion: kind.Group + "/" + kind.Version, Kind: key.Kind, Spec: json.RawMessage(spec)}
	d.Metadata.Namespace, d.Metadata.Name = key.Namespace, key.Name
	d.Metadata.Annotations = map[string]string{valueKey: value}
	if expect != 0 {
		d.Metadata.ResourceVersion = strconv.FormatInt(expect, 10)
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // Everything in it can be encoded.
	}
	return text
}

// writer is the only one that writes some objects.
type writer struct {
	random  *rand.Rand
	http    *http.Client
	servers []string
	told    *told
	objects []*writtenObject
}

// writtenObject is an object and what its writer knows about it.
type writtenObject struct {
	*marked
	number  int // of the last write that was sent
	version int64
	exists  bool
}

func (w *writer) run(ctx context.Context, pace float64) {
	for ctx.Err() == nil {
		o := pick(w.random, w.objects)
		if w.write(ctx, o, w.draw(o)) && w.random.IntN(3) == 0 {
			w.wait(ctx, o)
		}
		sleep(ctx, time.Duration(pace*w.random.Float64()*float64(400*time.Millisecond)))
	}
}

func (w *writer) draw(o *writtenObject) (next programmed.Write) {
	if o.fixed {
		return next
	}
	switch n := w.random.IntN(20); {
	case n < 2:
		next.Deleted = o.exists
	case n < 6:
		next.Private = true
	}
	return next
}

// write sends the next write of an object and records it. If it is not known what has
// happened, it reads the object until that is known.
func (w *writer) write(ctx context.Context, o *writtenObject, next programmed.Write) bool {
	o.number++
	next.Key, next.Number, next.Outcome = o.Key, o.number, consistency.Unknown
	method, target, text := w.request(o, next)
	at := w.told.write(next)
	status, answer, err := w.exchange(ctx, method, target, text)
	outcome, revision := consistency.Unknown, int64(0)
	switch {
	case err == nil && status < 300:
		var d document
		if outcome = consistency.OK; !next.Deleted && json.Unmarshal(answer, &d) == nil {
			revision = d.version(o.Kind).Revision
		}
		o.exists, o.version = !next.Deleted, revision
	case unsent(err) || err == nil && status >= 400 && status < 500:
		outcome = consistency.Refused
	}
	w.told.wrote(at, outcome, revision)
	for outcome != consistency.OK && ctx.Err() == nil && !w.learn(ctx, o) {
		sleep(ctx, 50*time.Millisecond)
	}
	return outcome == consistency.OK && !next.Deleted
}

func (w *writer) request(o *writtenObject, next programmed.Write) (method, target string, text []byte) {
	one := scopeOf(o.Key)
	value := strconv.Itoa(next.Number)
	switch {
	case next.Deleted:
		return http.MethodDelete, path(one), fmt.Appendf(nil, `{"preconditions":{"resourceVersion":"%d"}}`, o.version)
	case o.exists:
		return http.MethodPut, path(one), manifest(o.Key, value, o.version, o.spec(next))
	}
	one.Name = ""
	return http.MethodPost, path(one), manifest(o.Key, value, 0, o.spec(next))
}

// exchange sends a request to any server that accepts connections. The end of the run does not interrupt it.
func (w *writer) exchange(ctx context.Context, method, target string, text []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
	defer cancel()
	first := w.random.IntN(len(w.servers))
	for i := range w.servers {
		status, answer, err := send(ctx, w.http, method, w.servers[(first+i)%len(w.servers)]+target, "application/json", text)
		if !unsent(err) || i == len(w.servers)-1 {
			return status, answer, err
		}
	}
	panic("there are servers")
}

// learn reads an object.
func (w *writer) learn(ctx context.Context, o *writtenObject) bool {
	status, answer, err := w.exchange(ctx, http.MethodGet, path(scopeOf(o.Key)), nil)
	if err != nil || status != http.StatusOK && status != http.StatusNotFound {
		return false
	}
	o.exists, o.version = status == http.StatusOK, 0
	if o.exists {
		var d document
		if json.Unmarshal(answer, &d) != nil {
			return false
		}
		o.version = d.version(o.Kind).Revision
	}
	return true
}

// wait asks for the fresh status of an object until all proxies run it, or a while is over.
func (w *writer) wait(ctx context.Context, o *writtenObject) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r := &statusReader{random: w.random, http: w.http, servers: w.servers, told: w.told}
	r.wait(ctx, o.Key)
}

// sharedOut returns writers that share the objects.
func sharedOut(all []*marked, n int, one func(i int) *writer) (writers []*writer) {
	for i := range n {
		w := one(i)
		for j := i; j < len(all); j += n {
			w.objects = append(w.objects, &writtenObject{marked: all[j]})
		}
		writers = append(writers, w)
	}
	return writers
}

// markedScopes are the collections that have marked objects.
func markedScopes() (all []store.Scope) {
	for _, name := range []string{"VirtualService", "DestinationRule", "ServiceEntry"} {
		kind, _ := schema.KindByName(name)
		all = append(all, store.Scope{Kind: kind})
	}
	return all
}
