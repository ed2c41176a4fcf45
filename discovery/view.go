package discovery

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/ir"
)

// view is what all proxies with one mesh.View.Key are told. Each Envoy version
// is encoded when the first proxy asks for it.
type view struct {
	// Not the generation: a view that stays must not keep all the rest of its
	// time in memory.
	server   *Publisher
	serial   int64  // of the generation it was compiled for
	revision int64  // of that
	key      string // of its slot
	config   *ir.Config

	until atomic.Int64 // revision of the view that took its place, 0 while none did

	from       cached.Brief[map[diag.Ref]struct{}] // objects
	difference atomic.Pointer[difference]          // to the view before

	v1 cached.Lazy[v1Answers]
	v3 cached.Lazy[v3Answers]

	onStreams   cached.Lazy[v3Answers]
	streamed    atomic.Pointer[streamed] // nil before the first stream
	ofProxyless cached.Lazy[v3Answers]
	proxyless   atomic.Pointer[streamed] // of clients of gRPC, nil before the first
	streaming   sync.Mutex               // of who makes either
}

func newView(g *generation, key string, config *ir.Config) *view {
	return &view{server: g.server, serial: g.serial, revision: g.mesh.Revision, key: key, config: config}
}

// address is the one that listeners are spelled for: none where all of them are
// the same for every proxy. It differs only beside workloads, whose addresses
// the registry knows, so that invented ones take no memory.
func (v *view) address(ip string) string {
	if slices.ContainsFunc(v.config.Listeners, func(l *ir.Listener) bool { return l.IP == "" }) {
		return ip
	}
	return ""
}

func (v *view) encodedV1(ip string) (*v1Answers, error) {
	made := false
	a, err := v.v1.Get(func() (a *v1Answers, err error) {
		made = true
		err = v.server.recoverPanic("v1", func() error { a, err = encodeV1(v, ip); return err })
		return a, err
	})
	if made {
		v.server.found(v)
	}
	return a, err
}

func (v *view) encodedV3(ip string) (*v3Answers, error) { return v.encode(&v.v3, encodeV3, ip) }

func (v *view) encodedStreamed(ip string) (*v3Answers, error) {
	return v.encode(&v.onStreams, encodeStreamed, ip)
}

func (v *view) encodedProxyless() (*v3Answers, error) {
	return v.encode(&v.ofProxyless, func(v *view, _ string) *v3Answers { return encodeProxyless(v) }, "")
}

func (v *view) encode(answers *cached.Lazy[v3Answers], encode func(*view, string) *v3Answers, ip string) (*v3Answers, error) {
	made := false
	a, err := answers.Get(func() (a *v3Answers, err error) {
		made = true
		err = v.server.recoverPanic("v3", func() error { a = encode(v, ip); return nil })
		return a, err
	})
	if made {
		v.server.found(v)
	}
	return a, err
}

// origins are the objects in the configuration, collected when somebody asks.
func (v *view) origins() map[diag.Ref]struct{} {
	return *v.from.Get(func() *map[diag.Ref]struct{} {
		all := map[diag.Ref]struct{}{}
		v.config.EachOrigin(func(ref diag.Ref) { all[ref] = struct{}{} })
		return &all
	})
}

// problems of spelling, found so far in every version spoken.
func (v *view) problems() diag.List {
	var all diag.List
	if a := v.v1.Peek(); a != nil {
		all = append(all, a.problems.List()...)
	}
	for _, answers := range []*cached.Lazy[v3Answers]{&v.v3, &v.onStreams, &v.ofProxyless} {
		if a := answers.Peek(); a != nil {
			all = append(all, a.problems.List()...)
		}
	}
	return all
}
