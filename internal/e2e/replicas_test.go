package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// replicated is a world with two replicas of the server over an etcd of three
// members, and an Envoy that was given both.
type replicated struct {
	*World
	t        *testing.T
	etcd     *testbed.Etcd
	replicas []*Pilot
	links    []*testbed.Link // from the Envoy to each replica
	hung     *Pilot          // a replica that would not answer, nil for none
	flow     flow
}

// openReplicated opens one whose Envoy uses an API.
func openReplicated(t *testing.T, api string) *replicated {
	t.Helper()
	p := programs(t)
	p.Envoy = outside.Tool(t, "envoy")
	w := &replicated{World: &World{Dir: t.TempDir()}, t: t}
	t.Cleanup(w.close)
	if err := w.openShop(bookshop); err != nil {
		t.Fatal(err)
	}
	if err := w.Shop.open(w.moved.Replace(fmt.Sprintf(details, detailsV2))); err != nil {
		t.Fatal(err)
	}
	// The programs outlive t.Context, so that they end in order.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*patience)
	defer cancel()
	var err error
	if w.etcd, err = testbed.StartEtcd(ctx, w.Dir, 3); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		w.addReplica(ctx, p, fmt.Sprintf("replica-%d", i), api)
	}
	w.Pilot = w.replicas[0]
	w.do("create", w.file("services"))
	w.startEnvoy(ctx, api)
	// The services were written at one replica, and the proxy may be at the other,
	// which learns of them a moment later.
	for err = w.useProxyPort(ctx); err != nil && ctx.Err() == nil; {
		err = w.reachable(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *replicated) addReplica(ctx context.Context, p Programs, name, api string) {
	w.t.Helper()
	var members []string
	for _, m := range w.etcd.Members {
		members = append(members, m.URL())
	}
	dir := filepath.Join(w.Dir, name)
	err := os.Mkdir(dir, 0o700)
	if err != nil {
		w.t.Fatal(err)
	}
	replica, err := StartPilot(ctx, p, dir, "--data-dir", dir, "--etcd-endpoints", strings.Join(members, ","), "--mesh-config", w.file("mesh"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.replicas = append(w.replicas, replica)
	target := replica.XDS
	if api == "rest" {
		target = strings.TrimPrefix(replica.URL, "http://")
	}
	link, err := testbed.NewLink(target, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.links = append(w.links, link)
}

func (w *replicated) startEnvoy(ctx context.Context, api string) {
	w.t.Helper()
	var err error
	w.Sidecar, err = StartSidecar(ctx, w.Pilot, w.Dir, w.moved.Replace(node), "--api", api, "--xds", w.links[0].Addr()+","+w.links[1].Addr())
	if err != nil {
		w.t.Fatal(err)
	}
	if !w.polls() {
		w.Sidecar.offered = w.offered
	}
}

// offered asks all replicas: which one the Envoy is at is its own choice.
func (w *replicated) offered(ctx context.Context, taken state) (state, error) {
	var errs []error
	for _, r := range w.replicas {
		offered, err := r.streamed(w.Sidecar.Node)(ctx, taken)
		if err == nil {
			return offered, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (w *replicated) close() {
	if w.Sidecar != nil && w.Sidecar.Process != nil && w.t.Failed() {
		w.t.Logf("Envoy:\n%s", w.Sidecar.Tail())
	}
	for _, r := range w.replicas {
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", r.URL, r.Tail())
		}
	}
	if w.etcd != nil && w.t.Failed() {
		for _, m := range w.etcd.Members {
			w.t.Logf("%s:\n%s", m.Name, m.Tail())
		}
	}
	w.Pilot = nil
	if err := w.World.Close(); err != nil {
		w.t.Error(err)
	}
	for _, r := range w.replicas {
		r.Kill()
	}
	for _, l := range w.links {
		l.Close()
	}
	if w.etcd != nil {
		w.etcd.Close()
	}
}

// wait ends the test if something does not come about.
func (w *replicated) wait(what string, try func(context.Context) error) {
	w.t.Helper()
	if err := until(w.t.Context(), what, w.Sidecar.Process, try); err != nil {
		w.t.Fatal(err)
	}
}

// do has a file taken by any replica that can at present.
func (w *replicated) do(verb, file string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	err := testbed.Until(ctx, verb+" "+filepath.Base(file), func(ctx context.Context) error {
		var errs []error
		for _, r := range w.replicas {
			if r == w.hung {
				continue
			}
			_, err := r.Istioctl(ctx, verb, "-f", file)
			if err == nil || verb == "delete" && strings.Contains(err.Error(), "not found") {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// says has an object taken.
func (w *replicated) says(verb, name, text string) {
	w.t.Helper()
	file := w.file(name)
	if err := os.WriteFile(file, []byte(w.moved.Replace(text)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.do(verb, file)
}

// asked is how many requests of the Envoy each replica has had, and how many of
// them, such as a stream, go on.
func (w *replicated) asked(ctx context.Context) (total, active []int, err error) {
	text, err := fetch(ctx, w.Sidecar.Admin+"/clusters?format=json")
	if err != nil {
		return nil, nil, err
	}
	var answer struct {
		Clusters []struct {
			Name  string
			Hosts []struct {
				Address struct {
					Socket struct {
						Port int `json:"port_value"`
					} `json:"socket_address"`
				}
				Stats []struct{ Name, Value string }
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, nil, err
	}
	total, active = make([]int, len(w.links)), make([]int, len(w.links))
	for _, c := range answer.Clusters {
		if c.Name != "pilot-api" {
			continue
		}
		for _, host := range c.Hosts {
			i := slices.IndexFunc(w.links, func(l *testbed.Link) bool {
				_, port, _ := net.SplitHostPort(l.Addr())
				return port == strconv.Itoa(host.Address.Socket.Port)
			})
			for _, s := range host.Stats {
				n, _ := strconv.Atoi(s.Value)
				switch s.Name {
				case "rq_success":
					total[i] += n
				case "rq_active":
					active[i] += n
				}
			}
		}
	}
	return total, active, nil
}

// own is the replica that the Envoy asks at present.
func (w *replicated) own() (own int) {
	w.t.Helper()
	before, _, err := w.asked(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.wait("the Envoy to ask a replica", func(ctx context.Context) error {
		total, active, err := w.asked(ctx)
		if err != nil {
			return err
		}
		for own = range w.links {
			if w.polls() && total[own] > before[own] || !w.polls() && active[own] > 0 {
				return nil
			}
		}
		return fmt.Errorf("requests %v, going on %v", total, active)
	})
	return own
}

// polls reports whether the Envoy has no stream.
func (w *replicated) polls() bool { return strings.HasSuffix(w.t.Name(), "/rest") }

// known is what a replica says of the Envoy by itself.
func (w *replicated) known(ctx context.Context, r *Pilot) (states map[string]string, words string, err error) {
	var all []struct {
		Types map[string]struct{ State, Error string }
	}
	err = r.ask(ctx, "/apis/registry.istio.io/v1/proxies/"+url.PathEscape(w.Sidecar.Node)+"?local=true", &all)
	states = map[string]string{}
	for _, p := range all {
		for name, t := range p.Types {
			states[name] = t.State
			words += t.Error
		}
	}
	return states, words, err
}
